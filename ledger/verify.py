"""Verifying a ledger from its first byte to its last, and naming the first bad place.

Rule: verification believes nothing but the cluster id and the hashes that the caller remembers.
What is found is one finding, the first: behind it nothing can be believed anyway.
"""

from collections.abc import Callable, Generator, Mapping

import msgspec

from ledger.catalogue import find_segments
from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import LedgerError, UnknownFormatError
from ledger.gaps import Gap, list_gaps
from ledger.reader import cluster_id_of
from ledger.segments import LOG_FOLDER
from runtime.disk import Disk


class Finding(msgspec.Struct, frozen=True):
    """The first bad place."""

    file: str
    position: int
    """Of the frame that is bad, or where one is missing."""
    offset: int
    """Of the first record that can't be vouched for."""
    sentence: str


class VerifyReport(msgspec.Struct, frozen=True):
    """What was verified, and what was found."""

    cluster_id: str
    segments: int
    batches: int
    records: int
    size: int
    """Bytes read."""
    log_start: int
    """Where the history begins; over 0 it is said in a note."""
    log_end: int
    head: bytes
    """Chain hash at the log's end; it proves all that stands before it."""
    first_bad: Finding | None
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return self.first_bad is None


Progress = tuple[int, int]
"""Bytes done, bytes in all."""


def verify_ledger(
    disk: Disk,
    *,
    cluster_id: str | None = None,
    synced_to: LogMark | None = None,
    known: Mapping[int, bytes] | None = None,
    live: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Verify the ledger in a folder.

    `synced_to`: the manifest's mark; bad bytes behind it are a note. `known`: chain hashes by
    offset, remembered elsewhere (by brokers, by another controller, in a snapshot). `live`: a
    node may be writing, so a last frame that just ends too early is a note.
    Raises LedgerError when there is no ledger, UnknownFormatError, OSError.
    """
    steps = verify_steps(disk, cluster_id=cluster_id, synced_to=synced_to, known=known, live=live)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as stop:
            report: VerifyReport = stop.value
            return report
        if on_progress is not None:
            on_progress(done, total)


def verify_steps(
    disk: Disk,
    *,
    cluster_id: str | None = None,
    synced_to: LogMark | None = None,
    known: Mapping[int, bytes] | None = None,
    live: bool = False,
) -> Generator[Progress, None, VerifyReport]:
    """`verify_ledger` in steps of a few milliseconds, for a loop that must not be held."""
    verification = _Verification(disk, cluster_id, synced_to, known or {}, live=live)
    return (yield from verification.run())


class _Verification:
    def __init__(
        self,
        disk: Disk,
        cluster_id: str | None,
        synced_to: LogMark | None,
        known: Mapping[int, bytes],
        *,
        live: bool,
    ) -> None:
        self._disk = disk
        self._found = find_segments(disk)
        if not self._found and (synced_to is None or synced_to.log_end == 0):
            raise LedgerError("no ledger is here: no segment file in log/ or archive/")
        self._cluster_id = cluster_id_of(disk) if cluster_id is None else cluster_id
        self._synced_end = synced_to.log_end if synced_to is not None else None
        self._known = dict(known)
        if synced_to is not None:
            self._known.setdefault(synced_to.log_end, synced_to.head)
        self._live = live
        self._gaps: dict[int, Gap] = {gap.start: gap for gap in list_gaps(disk)}
        self._mark: LogMark | None = None
        self._end_position = 0
        self._log_start = self._found[0][0] if self._found else 0
        self._segments = self._batches = self._records = self._bytes = 0
        self._notes: list[str] = []
        self._bad: Finding | None = None

    def run(self) -> Generator[Progress, None, VerifyReport]:
        total = sum(self._disk.size(path) for _, path in self._found)
        if self._log_start:
            self._notes.append(f"history from offset {self._log_start}")
        for i, (base, path) in enumerate(self._found):
            if not self._may_follow(i, base):
                break
            last = i == len(self._found) - 1
            checker = SegmentChecker(
                self._cluster_id, base, self._mark, self._gap_within(i), self._known
            )
            try:
                yield from self._feed(checker, path, total)
            except BadSegmentError as error:
                self._count(checker, base)
                self._judge(path, error, last=last)
                break
            except UnknownFormatError as error:
                raise LedgerError(f"{path}: {error}") from None
            self._count(checker, base)
        if self._bad is None:
            self._check_known()
        return self._report()

    def _feed(
        self, checker: SegmentChecker, path: str, total: int
    ) -> Generator[Progress, None, None]:
        position = 0
        while not checker.stopped:
            piece = self._disk.read(path, position, PIECE_BYTES)
            if not piece:
                break
            checker.feed(piece)
            position += len(piece)
            self._bytes += len(piece)
            yield self._bytes, total
        checker.finish()

    def _gap_within(self, i: int) -> int | None:
        """Where the history in segment `i` ends because a gap follows."""
        base = self._found[i][0]
        after = self._found[i + 1][0] if i + 1 < len(self._found) else None
        if after is None:
            return None
        ends = [g.start for g in self._gaps.values() if base < g.start < after <= g.end]
        return ends[0] if ends else None

    def _may_follow(self, i: int, base: int) -> bool:
        mark = self._mark
        if mark is None or mark.log_end == base:
            return True
        gap = self._gaps.get(mark.log_end)
        if gap is not None and base <= gap.end:
            self._notes.append(
                f"offsets {gap.start} to {base - 1} are being fetched back from a peer; "
                f"the run that is complete begins at {base}"
            )
            self._mark, self._log_start = None, base
            return True
        path = self._found[i - 1][1]
        if self._synced_end is not None and mark.log_end >= self._synced_end:
            self._notes.append(f"{self._found[i][1]} was left by a crash; the node removes it")
            return False
        what = (
            f"offsets {mark.log_end} to {base - 1} are missing: no segment holds them"
            if base > mark.log_end
            else f"{path} reaches to offset {mark.log_end}, into the segment after it"
        )
        self._bad = Finding(path, self._end_position, mark.log_end, what)
        return False

    def _count(self, checker: SegmentChecker, base: int) -> None:
        self._end_position = checker.position
        if checker.header is None:
            return
        self._segments += 1
        self._batches += checker.batches
        self._records += checker.mark.log_end - base
        self._mark = checker.mark

    def _judge(self, path: str, error: BadSegmentError, *, last: bool) -> None:
        place = f"{path}, byte {error.position}, offset {error.offset}"
        if self._synced_end is not None and error.offset >= self._synced_end:
            self._notes.append(
                f"{place}: {error.reason}; it was not synced yet, the node writes it again"
            )
        elif error.torn and last and self._live and self._synced_end is None:
            self._notes.append(f"{place}: the tail is unfinished, a node may be writing it")
        else:
            self._bad = Finding(path, error.position, error.offset, error.reason)

    def _check_known(self) -> None:
        end = self._mark.log_end if self._mark is not None else 0
        beyond = [offset for offset in self._known if offset > end]
        if beyond:
            self._bad = Finding(
                self._found[-1][1] if self._found else LOG_FOLDER,
                self._end_position,
                end,
                f"the log ends at offset {end}, and it once reached to {max(beyond)}: "
                f"its end is gone",
            )

    def _report(self) -> VerifyReport:
        mark = self._mark or LogMark.beginning(self._cluster_id)
        return VerifyReport(
            cluster_id=self._cluster_id,
            segments=self._segments,
            batches=self._batches,
            records=self._records,
            size=self._bytes,
            log_start=self._log_start,
            log_end=mark.log_end,
            head=mark.head,
            first_bad=self._bad,
            notes=tuple(self._notes),
        )
