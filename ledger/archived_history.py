"""The part of a node's history that lies in the archive, as its receipts tell.

Rule: receipts count only as far as they join, without a gap, the mark at which the node's own
segments begin. A receipt that can't be read counts as none: the archive is then asked again.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.receipts import PLACE_NAME, RECEIPTS_FOLDER, Receipt, is_receipt, parse_receipt
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger


def read_receipts(disk: Disk, cluster_id: str | None) -> tuple[list[Receipt], dict[str, str]]:
    """Return the receipts in a node's folder, ascending, and by path why others can't be read.

    Raises OSError.
    """
    found: list[Receipt] = []
    bad: dict[str, str] = {}
    for name in disk.list(RECEIPTS_FOLDER):
        if not is_receipt(name):
            continue
        path = f"{RECEIPTS_FOLDER}/{name}"
        try:
            receipt = parse_receipt(disk.read(path))
        except LedgerError as error:
            bad[path] = str(error)
            continue
        if receipt.path != path:
            bad[path] = f"it is the content of {receipt.path}"
        elif cluster_id is not None and receipt.cluster_id != cluster_id:
            bad[path] = f"it belongs to cluster {receipt.cluster_id!r}"
        else:
            found.append(receipt)
    found.sort(key=lambda receipt: receipt.base_offset)
    return found, bad


def chain_of(receipts: dict[LogMark, Receipt], mark: LogMark) -> list[Receipt]:
    """Return the receipts that join a mark without a gap, ascending. `receipts`: by their end."""
    chain: list[Receipt] = []
    while mark.log_end and (receipt := receipts.get(mark)) is not None:
        chain.append(receipt)
        mark = receipt.start
    return chain[::-1]


class ArchivedHistory:
    """The receipts of one node."""

    def __init__(self, disk: Disk, cluster_id: str, log: "BoundLogger") -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._log = log
        self._by_end: dict[LogMark, Receipt] = {}
        self._chain: tuple[LogMark | None, list[Receipt]] = (None, [])
        self._place = ""

    def load(self) -> None:
        """Read the receipts. Raises OSError."""
        found, bad = read_receipts(self._disk, self._cluster_id)
        for path, reason in bad.items():
            self._log.warning("receipt_damaged", file=path, reason=reason)
        self._by_end = {receipt.end: receipt for receipt in found}
        self._chain = (None, [])

    def ending_at(self, mark: LogMark) -> Receipt | None:
        """Return the receipt of the segment that ends at a mark."""
        return self._by_end.get(mark)

    def chain(self, mark: LogMark) -> list[Receipt]:
        """Return the receipts that join a mark without a gap, ascending."""
        known, chain = self._chain
        if known != mark:
            chain = chain_of(self._by_end, mark)
            self._chain = (mark, chain)
        return chain

    def start(self, mark: LogMark) -> LogMark:
        """Return where the history begins that ends at a mark."""
        chain = self.chain(mark)
        return chain[0].start if chain else mark

    def store(
        self, receipt: Receipt, place: str, on_done: Callable[[OSError | None], None]
    ) -> None:
        """Write a receipt, durably. It counts from then on. `place`: where the archive is."""
        disk, data, same = self._disk, receipt.encode(), place == self._place

        def work() -> None:
            disk.make_folder(RECEIPTS_FOLDER)
            if not same:
                disk.replace(PLACE_NAME, place.encode())
            disk.replace(receipt.path, data)

        def done(_result: None, error: OSError | None) -> None:
            if error is None:
                self._place = place
                self._by_end[receipt.end] = receipt
                self._chain = (None, [])
            on_done(error)

        self._disk.in_background(work, done)
