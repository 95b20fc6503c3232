"""Moves closed segments of the ledger to the archive, the oldest first.

Rule: a segment is copied, read back and verified from its first byte to its last, a receipt is
written durably, and only then is it removed here. `Leaving` says which segment may leave.

All controllers of a cluster share the archive. One that finds a segment there copies nothing, and
verifies what is there. The first standby copies, and each other controller waits for one more look
at the same segment, the leader longest. A controller that was asked to archive now (`run_now`)
doesn't wait for others.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.archive_access import ArchiveAccess, ArchiveUnavailableError
from controller.storage.archive_run import ArchiveRun
from controller.storage.fetch_job import CannotGoOnError, FetchJob, Resume, Steps
from controller.storage.leaving import Leaving, LeavingSegment
from ledger.archive_place import ArchivePlace
from ledger.archived_history import ArchivedHistory
from ledger.catalogue import Segment
from ledger.chain import LogMark
from ledger.checker import PIECE_BYTES, BadSegmentError, SegmentChecker
from ledger.errors import ArchiveDamagedError, DamagedLedgerError, LedgerError
from ledger.gaps import change_gap
from ledger.ledger import Ledger
from ledger.recalled import RECALLED_FOLDER
from ledger.receipts import Receipt
from ledger.segments import LOG_FOLDER, segment_name
from quorum.api import Quorum
from runtime.clock import Clock, Timer
from runtime.disk.errors import BROKEN, sentence
from runtime.disk.interface import Disk
from snapshots.store import CheckpointStore

_WRITE_BYTES: Final = 256 * 1024
_NOT_NOW: Final = "this controller is stopping or replaces its ledger; ask again in a moment"


class Archiving:
    """Archives the segments of one controller's ledger."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        archived: ArchivedHistory,
        access: ArchiveAccess,
        on_damaged: Callable[[DamagedLedgerError], None],
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_failed` stops the node: its disk can't be trusted with names any more."""
        self._config = config
        self._clock = clock
        self._disk = disk
        self._quorum = quorum
        self._archived = archived
        self._access = access
        self._on_damaged = on_damaged
        self._log = log
        self._leaving = Leaving(config, clock, quorum, archived)
        self._job = FetchJob(config, clock, quorum, on_failed)
        self._ledger: Ledger | None = None
        self._store: CheckpointStore | None = None
        self._waited: dict[int, int] = {}
        """By base offset: looks at a segment that another controller should copy first."""
        self._run: ArchiveRun | None = None
        """The newest one that somebody asked for."""
        self._timer: Timer | None = None
        """Of the pause before the next look."""
        self._wake: Callable[[], None] = lambda: None
        """Ends that pause."""
        self.failures = 0
        self.last_success_ms = 0
        """When a pass ended well last, milliseconds since 1970; 0: not yet."""

    def begin(self, ledger: Ledger, store: CheckpointStore) -> None:
        """Look from now on, at a start or after a catch-up."""
        self._ledger, self._store = ledger, store
        self._job.start(self._steps())

    def stop(self) -> None:
        """Stop. What was copied in part is removed from the archive."""
        self._job.stop()
        self._awake()
        self._ledger = self._store = None
        run = self.under_way
        if run is not None:
            run.end(failed=_NOT_NOW)

    @property
    def location(self) -> str:
        """The archive's path or URL, without secrets."""
        return self._access.location

    @property
    def under_way(self) -> ArchiveRun | None:
        """The run that somebody asked for and that has not ended."""
        return None if self._run is None or self._run.ended else self._run

    @property
    def newest_run(self) -> ArchiveRun | None:
        """The newest run that somebody asked for, whether or not it has ended."""
        return self._run

    def run_now(self) -> ArchiveRun:
        """Look at once, and copy without waiting for others; or join the run that goes on."""
        run = self.under_way
        if run is None:
            run = self._run = ArchiveRun(1 if self._run is None else self._run.number + 1)
            if self._ledger is None:
                run.end(failed=_NOT_NOW)
            self._clock.call_soon(self._wake_up)
        return run

    def _steps(self) -> Steps[None]:
        while True:
            if self.under_way is None:
                yield from self._pause()
            run, note, failed = self.under_way, "", ""
            try:
                note = yield from self._pass(run)
            except (ArchiveUnavailableError, LedgerError) as error:
                failed = str(error)
            except OSError as error:
                failed = sentence(error, "archiving the ledger")
                if error.errno in BROKEN:
                    raise CannotGoOnError(failed) from error
            if failed:
                self.failures += 1
                self._log.error("archive_failed", why=failed)
            else:
                self.last_success_ms = self._clock.wall_ms()
            if run is not None:
                run.end(note, failed)

    def _pause(self) -> Steps[None]:
        """Wait for the next look by schedule, or until somebody asks for one."""

        def begin(resume: Resume) -> None:
            def go_on() -> None:
                self._awake()
                resume(None)

            self._timer = self._clock.call_later(self._config.archive_every_s, go_on)
            self._wake = go_on

        yield begin

    def _wake_up(self) -> None:
        # Not what was the way to wake it a moment ago: the pause may be over by now.
        self._wake()

    def _awake(self) -> None:
        """Forget the pause."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wake = None, lambda: None

    def _pass(self, run: ArchiveRun | None) -> Steps[str]:
        """Archive what may leave, and return a sentence about what stays.

        `run`: that of somebody who asked. Raises ArchiveUnavailableError, LedgerError, OSError.
        """
        bases: list[int] | None = None
        self._close_gap()
        while isinstance(found := self._leaving.next(self._ledger, self._store), LeavingSegment):
            ledger, segment, end = found
            size = 0 if run is None else ledger.segment_size(segment.base_offset)
            if end is not None and self._archived.ending_at(end) is None:
                if bases is None:
                    bases = yield from self._access.bases()
                    self._must_be_ours(segment.header.previous, bases)
                hurry = run is not None
                receipt = yield from self._secure(segment, end, bases, hurry=hurry)
                if receipt is None:
                    return "another controller copies first"
                yield from self._job.written(
                    partial(self._archived.store, receipt, self._access.location)
                )
                self._log.info(
                    "segment_archived", base_offset=receipt.base_offset, bytes=receipt.size
                )
            yield from self._remove(ledger, segment)
            if run is not None:
                run.removed(size)
        return found

    def _must_be_ours(self, begin: LogMark, bases: list[int]) -> None:
        """Raise ArchiveDamagedError if the place lacks what was archived last.

        A file system that is not mounted, or another bucket, must not be taken for the archive.
        """
        chain = self._archived.chain(begin)
        if chain and chain[-1].base_offset not in bases:
            base = chain[-1].base_offset
            file = f"{self._access.location}/{segment_name(base)}"
            reason = "it is missing, and it was there; this may be another folder or bucket"
            raise ArchiveDamagedError(file, 0, base, reason)

    def _rank(self) -> int:
        """Return how many controllers should copy a segment before this one."""
        leader = self._quorum.leader_and_epoch().leader
        voters = [voter.node_id for voter in self._quorum.voters()]
        order = sorted(voters, key=lambda each: (each == leader, each))
        own = self._config.node_id
        return order.index(own) if own in order else len(order)

    # -- one segment ------------------------------------------------------------------------

    def _secure(
        self, segment: Segment, end: LogMark, bases: list[int], *, hurry: bool
    ) -> Steps[Receipt | None]:
        """Make sure that the archive holds a segment; None: another controller should copy it."""
        base = segment.base_offset
        if base not in bases:
            waited = self._waited.get(base, 0)
            if not hurry and waited < self._rank():
                self._waited = {base: waited + 1}
                return None
            yield from self._copy(segment, end)
            bases.append(base)
        receipt = yield from self._access.verify(self._job, base, segment.header.previous, end)
        if receipt is None:
            name = f"{self._access.location}/{segment_name(base)}"
            raise ArchiveDamagedError(name, 0, base, "it ends before the segment here does")
        self._waited.clear()
        return receipt

    def _copy(self, segment: Segment, end: LogMark) -> Steps[None]:
        """Copy a segment, and verify the bytes here on the way."""
        name = segment_name(segment.base_offset)
        writer = yield from self._access.ask(lambda place: place.create(name))
        try:
            yield from self._write(segment, end, writer.write)
            yield from self._access.ask(lambda _place: writer.close())
        except BaseException:
            self._access.do(lambda _place: writer.give_up())
            raise

    def _write(self, segment: Segment, end: LogMark, write: Callable[[bytes], None]) -> Steps[None]:
        path = segment.path
        try:
            yield from self._write_sound(segment, end, write)
        except BadSegmentError as error:
            damage = DamagedLedgerError(
                path, error.position, error.offset, error.reason, base_offset=segment.base_offset
            )
            self._on_damaged(damage)
            raise damage from None

    def _write_sound(
        self, segment: Segment, end: LogMark, write: Callable[[bytes], None]
    ) -> Steps[None]:
        """Write a segment, as long as its bytes are sound. Raises BadSegmentError."""
        checker = SegmentChecker(
            self._config.cluster_id, segment.base_offset, segment.header.previous, end.log_end
        )
        path, position = segment.path, 0

        def check(piece: bytes) -> Generator[None, None, None]:
            for at in range(0, len(piece), PIECE_BYTES):
                checker.feed(piece[at : at + PIECE_BYTES])
                yield

        while checker.mark.log_end < end.log_end:
            piece = self._disk.read(path, position, _WRITE_BYTES)
            if not piece:
                raise BadSegmentError(position, checker.mark.log_end, "the file ends too early")
            yield from self._job.in_slices(check(piece))
            if checker.stopped:
                piece = piece[: checker.position - position]
            position += len(piece)
            yield from self._access.ask(partial(_give, write, piece))
        if checker.mark != end:
            reason = "it does not end in the chain hash that what follows it continues"
            raise BadSegmentError(checker.position, checker.mark.log_end, reason)

    def _remove(self, ledger: Ledger, segment: Segment) -> Steps[None]:
        """Remove a segment here. Its index stays, for when it is read back."""
        if self._ledger is not ledger or ledger.catalogue.segments[0] is not segment:
            return  # the ledger was replaced meanwhile
        name = segment_name(segment.base_offset)
        path = ledger.forget_oldest(f"{RECALLED_FOLDER}/{name}")

        def work() -> None:
            self._disk.unlink(path)
            self._disk.sync_folder(path.partition("/")[0] or LOG_FOLDER)

        # A file that could not be removed is there at the next start, and leaves then.
        yield from self._job.written(
            lambda done: self._disk.in_background(work, lambda _result, error: done(error))
        )
        self._log.info("segment_removed", base_offset=segment.base_offset, file=path)
        self._close_gap()

    def _close_gap(self) -> None:
        """Remove the mark of a gap below which nothing is here, if the archive holds all of it."""
        ledger = self._ledger
        if ledger is None or (gap := ledger.catalogue.gap) is None:
            return
        catalogue, run = ledger.catalogue, ledger.catalogue.run
        if not run or catalogue.segments[0] is not run[0]:
            return
        if not self._archived.start(run[0].header.previous).log_end:
            change_gap(self._disk, gap, None)
            catalogue.settle_gap()


def _give(write: Callable[[bytes], None], piece: bytes, _place: ArchivePlace) -> None:
    write(piece)
