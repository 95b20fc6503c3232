"""Verifies a ledger from its first byte to its last, and names the first bad place.

Rule: verification trusts only the cluster id and the hashes that the caller remembers. It ends at
the first finding, because nothing after a bad place is proved. With `keep_going` it continues at
the next whole frame and takes that frame's previous hash on trust.
"""

from collections.abc import Callable, Generator, Mapping

import msgspec

from ledger.catalogue import find_segments
from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.copies import first_difference, second_copy
from ledger.errors import LedgerError, UnknownFormatError
from ledger.gaps import Gap, list_gaps
from ledger.reader import cluster_id_of
from ledger.resuming import find_batch
from ledger.segments import HEADER_BYTES_MAX, LOG_FOLDER, parse_segment_header
from runtime.disk.interface import Disk


class Finding(msgspec.Struct, frozen=True):
    """A bad place."""

    file: str
    position: int
    """Where the bad frame begins, or where a frame is missing."""
    offset: int
    """The first record that can't be vouched for."""
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}, byte {self.position}, offset {self.offset}: {self.sentence}"


class VerifyReport(msgspec.Struct, frozen=True):
    """What was verified, and the findings."""

    cluster_id: str
    segments: int
    batches: int
    records: int
    size: int
    """Bytes read."""
    log_start: int
    """The first offset of the history. If it is not 0, a note says so."""
    log_end: int
    head: bytes
    """The chain hash at the end of the log. It proves everything before it."""
    first_bad: Finding | None
    notes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    """All findings if it kept going, otherwise the first one."""

    @property
    def ok(self) -> bool:
        """There is no finding."""
        return self.first_bad is None


Progress = tuple[int, int]
"""Bytes read so far, bytes in all."""


def verify_ledger(
    disk: Disk,
    *,
    cluster_id: str | None = None,
    synced_to: LogMark | None = None,
    known: Mapping[int, bytes] | None = None,
    live: bool = False,
    keep_going: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Verify the ledger in a folder.

    `synced_to`: the manifest's mark. Bad bytes after it are a note. `known`: chain hashes by offset
    that were remembered elsewhere: by brokers, by another controller, in a snapshot. `live`: a node
    may be writing, so a last frame that ends too early is a note. `keep_going`: continue after a
    finding. Raises LedgerError if there is no ledger, UnknownFormatError, OSError.
    """
    steps = verify_steps(
        disk,
        cluster_id=cluster_id,
        synced_to=synced_to,
        known=known,
        live=live,
        keep_going=keep_going,
    )
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
    keep_going: bool = False,
) -> Generator[Progress, None, VerifyReport]:
    """Do what `verify_ledger` does in steps of a few milliseconds.

    For a loop that must not block.
    """
    verification = _Verification(
        disk, cluster_id, synced_to, known or {}, live=live, keep_going=keep_going
    )
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
        keep_going: bool,
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
        self._met: set[int] = set()
        self._live = live
        self._keep_going = keep_going
        self._lost = False
        """The segment before this one is damaged, so this one has nothing to continue."""
        self._gaps: dict[int, Gap] = {gap.start: gap for gap in list_gaps(disk)}
        self._mark: LogMark | None = None
        self._end_position = 0
        self._log_start = self._found[0][0] if self._found else 0
        self._segments = self._batches = self._records = self._bytes = self._bytes_before = 0
        self._notes: list[str] = []
        self._findings: list[Finding] = []

    def run(self) -> Generator[Progress, None, VerifyReport]:
        total = sum(self._size(path) for _, path in self._found)
        if self._log_start:
            self._notes.append(f"history from offset {self._log_start}")
        for i, (base, path) in enumerate(self._found):
            if not self._may_follow(i, base):
                break
            previous = None if self._lost else self._mark
            checker = SegmentChecker(
                self._cluster_id, base, previous, self._gap_within(i), self._known
            )
            yield from self._read(checker, path, total, last=i == len(self._found) - 1)
            self._count(checker)
            if self._findings and not self._keep_going:
                break
            yield from self._hold_against_copy(base, path, total)
            if self._findings and not self._keep_going:
                break
        if not self._lost:
            self._check_known()
        return self._report()

    def _read(
        self, checker: SegmentChecker, path: str, total: int, *, last: bool
    ) -> Generator[Progress, None, None]:
        """Read one segment. If we keep going, continue after each bad place."""
        position, resumed_at = 0, -1
        self._lost = False
        while True:
            try:
                yield from self._feed(checker, path, position, total)
                self._lost = False
                return
            except BadSegmentError as error:
                bad = error
            except UnknownFormatError as error:
                if not self._keep_going:
                    raise LedgerError(f"{path}: {error}") from None
                bad = BadSegmentError(checker.position, checker.mark.log_end, str(error))
            except OSError as error:
                if not self._keep_going:
                    raise
                self._findings.append(
                    Finding(path, checker.position, checker.mark.log_end, str(error))
                )
                self._lost = True
                return
            self._lost = self._judge(path, bad, last=last)
            if not self._lost or not self._keep_going:
                return
            found = find_batch(
                self._disk, path, bad.position + (bad.position == resumed_at), self._cluster_id
            )
            if found is None:
                return
            position, batch = found
            checker.resume(position, batch)
            resumed_at = position

    def _hold_against_copy(
        self, base: int, path: str, total: int
    ) -> Generator[Progress, None, None]:
        copy = second_copy(self._disk, path)
        if copy is None:
            return
        comparing = first_difference(self._disk, path, copy)
        while True:
            try:
                next(comparing)
            except StopIteration as stop:
                if stop.value is not None:
                    sentence = f"this is a copy of {path}, but its bytes differ"
                    self._findings.append(Finding(copy, stop.value, base, sentence))
                return
            yield self._bytes, total

    def _feed(
        self, checker: SegmentChecker, path: str, position: int, total: int
    ) -> Generator[Progress, None, None]:
        while not checker.stopped:
            piece = self._disk.read(path, position, PIECE_BYTES)
            if not piece:
                break
            checker.feed(piece)
            position += len(piece)
            self._bytes = max(self._bytes, self._bytes_before + position)
            yield self._bytes, total
        checker.finish()

    def _size(self, path: str) -> int:
        try:
            return self._disk.size(path)
        except OSError:
            if not self._keep_going:
                raise
            return 0  # only for progress; reading reports what is wrong

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
        if mark is None or self._lost or mark.log_end == base:
            return True
        gap = self._gaps.get(mark.log_end)
        if gap is not None and base <= gap.end:
            self._notes.append(
                f"the node is fetching offsets {gap.start} to {base - 1} back from a peer; "
                f"the history without a gap begins at {base}"
            )
            self._mark, self._log_start = None, base
            return True
        path = self._found[i - 1][1]
        if self._synced_end is not None and mark.log_end >= self._synced_end:
            self._notes.append(f"a crash left {self._found[i][1]}; the node removes it")
            return False
        what = (
            f"offsets {mark.log_end} to {base - 1} are missing: no segment holds them"
            if base > mark.log_end
            else f"{path} reaches to offset {mark.log_end}, which overlaps the segment after it"
        )
        self._findings.append(Finding(path, self._end_position, mark.log_end, what))
        self._lost = True
        return self._keep_going

    def _count(self, checker: SegmentChecker) -> None:
        self._end_position = checker.position
        self._bytes_before = self._bytes
        if checker.header is None:
            return
        self._segments += 1
        self._batches += checker.batches
        self._records += checker.records
        self._met |= checker.met
        self._mark = checker.mark

    def _judge(self, path: str, error: BadSegmentError, *, last: bool) -> bool:
        """Record a bad place as a note or as a finding. Returns whether it is a finding."""
        place = f"{path}, byte {error.position}, offset {error.offset}"
        if self._synced_end is not None and error.offset >= self._synced_end:
            self._notes.append(
                f"{place}: {error.reason}. This was not synced yet; the node writes it again"
            )
        elif error.torn and last and self._live and self._synced_end is None:
            self._notes.append(f"{place}: the tail is unfinished; a node may be writing it")
        else:
            self._findings.append(Finding(path, error.position, error.offset, error.reason))
            return True
        return False

    def _check_known(self) -> None:
        """Compare the remembered hashes with what was read, unless reading ended at a bad place."""
        if self._findings and not self._keep_going:
            return
        end = self._mark.log_end if self._mark is not None else 0
        file = self._found[-1][1] if self._found else LOG_FOLDER
        beyond = [offset for offset in self._known if offset > end]
        if beyond:
            what = (
                f"the log ends at offset {end}, but it once reached to {max(beyond)}: "
                f"its end is lost"
            )
            self._findings.append(Finding(file, self._end_position, end, what))
        for offset in sorted(self._known.keys() - self._met - set(beyond)):
            if offset < self._log_start:
                self._notes.append(
                    f"the remembered hash at offset {offset} was not checked: it lies before the "
                    "history that is here"
                )
            elif self._findings or not self._found:
                continue  # the batch may be in the part that could not be read
            elif offset == self._log_start:
                self._check_beginning(offset)
            else:
                what = f"no batch ends at offset {offset}, where a chain hash is remembered"
                self._findings.append(Finding(self._holding(offset), 0, offset, what))

    def _check_beginning(self, offset: int) -> None:
        """Check a remembered hash that belongs right before the first batch here."""
        path = self._found[0][1]
        header, _ = parse_segment_header(self._disk.read(path, 0, HEADER_BYTES_MAX))
        if header.previous.head != self._known[offset]:
            what = f"the chain hash at offset {offset} is not the one remembered elsewhere"
            self._findings.append(Finding(path, 0, offset, what))

    def _holding(self, offset: int) -> str:
        """The segment that an offset lies in."""
        return [path for base, path in self._found if base <= offset][-1]

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
            first_bad=self._findings[0] if self._findings else None,
            notes=tuple(self._notes),
            findings=tuple(self._findings),
        )
