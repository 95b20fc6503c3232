"""Backfill: fetches missing history back from a peer's ledger.

Rule: the newest missing segment comes first. The segment after it names the chain hash that it must
end in. So each segment is proved before it is put in place, and the history on disk stays one run
without a gap.

`mend` fetches a damaged segment in the same way.
"""

from collections.abc import Sequence

from ledger.catalogue import Catalogue, Segment, find_segments, read_header
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError
from ledger.gaps import change_gap, list_gaps
from ledger.pull import SegmentPull
from ledger.segments import LOG_FOLDER
from runtime.disk.interface import Disk


class Backfill:
    """Fetches the segments before a ledger's run, one after another.

    Call `next_pull` with the base offsets that a peer has. Run the pull (see `SegmentPull`),
    `place` it and `adopt` it. Repeat until `next_pull` returns None.
    """

    def __init__(self, disk: Disk, cluster_id: str, catalogue: Catalogue) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._catalogue = catalogue

    @property
    def wanted_below(self) -> int:
        """History before this offset is missing; 0 if none is."""
        return self._catalogue.log_start

    def next_pull(self, peer_bases: Sequence[int]) -> SegmentPull | None:
        """Return the next pull; None if nothing is missing or the peer doesn't have it."""
        run = self._catalogue.run
        below = [base for base in peer_bases if base < self.wanted_below]
        if not run or not below:
            return None
        first = run[0].header.previous
        return SegmentPull(self._disk, self._cluster_id, max(below), first.log_end, first.head)

    def adopt(self, pull: SegmentPull) -> None:
        """Make a placed segment readable. Blocks for syncs when a gap shrinks."""
        path = f"{LOG_FOLDER}/{pull.name}"
        base = int(pull.name.removesuffix(".log"))
        header, length = read_header(self._disk, path, base, self._cluster_id)
        catalogue = self._catalogue
        catalogue.add(Segment(path, header, length))
        catalogue.settle_gap()
        tidy_gaps(self._disk, catalogue)


def tidy_gaps(disk: Disk, catalogue: Catalogue) -> None:
    """Make the gap markers name exactly what is still missing."""
    while gaps := list_gaps(disk):
        if gaps[-1] == catalogue.gap:
            return
        change_gap(disk, gaps[-1], catalogue.gap)
        catalogue.settle_gap()


def mend(disk: Disk, cluster_id: str, base_offset: int, mark: LogMark) -> SegmentPull:
    """Return a pull for the damaged segment that begins at `base_offset`.

    `base_offset` is that of `DamagedLedgerError`, `mark` the manifest's. Place the pulled segment,
    then open the ledger again. The pull must end where the next undamaged segment begins. If the
    segments between the two are lost too, the peer's segment ends earlier than that.
    """
    for base, path in find_segments(disk):
        if base <= base_offset or base >= mark.log_end:
            continue
        try:
            header, _ = read_header(disk, path, base, cluster_id)
        except DamagedBatchError:
            continue
        return SegmentPull(disk, cluster_id, base_offset, base, header.previous.head)
    return SegmentPull(disk, cluster_id, base_offset, mark.log_end, mark.head)
