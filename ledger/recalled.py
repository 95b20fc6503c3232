"""Segments that were read back from the archive, for readers: a bounded cache in `recalled/`.

Rule: what lies here was verified when it came, and is never the only copy. The segments that were
read longest ago go first. A new process begins with none.
"""

from collections import OrderedDict

from ledger.catalogue import Catalogue, Segment, read_header
from ledger.receipts import Receipt
from ledger.segments import segment_name
from runtime.disk.interface import Disk

RECALLED_FOLDER = "recalled"


class RecalledSegments:
    """The cache of one node."""

    def __init__(self, disk: Disk, cluster_id: str, bytes_max: int) -> None:
        """It keeps one segment, however large, and others up to `bytes_max` in all."""
        self._disk = disk
        self._cluster_id = cluster_id
        self._bytes_max = bytes_max
        self._here: OrderedDict[int, tuple[Receipt, Catalogue]] = OrderedDict()

    @property
    def bytes(self) -> int:
        """Bytes of the segments here."""
        return sum(receipt.size for receipt, _ in self._here.values())

    def clear(self) -> None:
        """Remove what an earlier process left. Raises OSError."""
        self._here.clear()
        for name in self._disk.list(RECALLED_FOLDER):
            self._disk.unlink(f"{RECALLED_FOLDER}/{name}")

    def get(self, receipt: Receipt) -> Catalogue | None:
        """Return what reads a segment; None: it is not here."""
        found = self._here.get(receipt.base_offset)
        if found is None or found[0] != receipt:
            return None
        self._here.move_to_end(receipt.base_offset)
        return found[1]

    def path(self, receipt: Receipt) -> str:
        """Return where a segment lies, or would lie."""
        return f"{RECALLED_FOLDER}/{segment_name(receipt.base_offset)}"

    def admit(self, receipt: Receipt) -> None:
        """Take a segment in that was put in its place, and make room. Raises LedgerError, OSError.

        The caller has verified the segment.
        """
        path, base = self.path(receipt), receipt.base_offset
        header, length = read_header(self._disk, path, base, self._cluster_id)
        segment = Segment(path, header, length)
        end = receipt.end.log_end
        catalogue = Catalogue(self._disk, self._cluster_id, [segment], end, alone=True)
        self._here[base] = (receipt, catalogue)
        self._here.move_to_end(base)
        while len(self._here) > 1 and self.bytes > self._bytes_max:
            self._drop(next(iter(self._here)))

    def damaged(self, receipt: Receipt) -> None:
        """Remove a copy that turned out to be damaged. Raises OSError."""
        if receipt.base_offset in self._here:
            self._drop(receipt.base_offset)

    def _drop(self, base_offset: int) -> None:
        receipt, _ = self._here.pop(base_offset)
        self._disk.unlink(self.path(receipt))
