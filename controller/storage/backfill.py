"""Fetches the history that a checkpoint skipped from any peer, and verifies it backwards.

What the archive holds is not fetched: the archive's copy is verified, and a receipt is written.
Only if the node needs the records themselves, to load its state, it fetches them from there too.

Rule: newest first. Each segment must end in the chain hash that the segment after it names, so a
segment is proved before it is put in place. This is work for idle times: one piece at a time, from
one peer after another, and a pause whenever a peer has nothing.
"""

from collections.abc import Callable
from contextlib import closing

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.archive_access import ArchiveAccess, ArchiveUnavailableError
from controller.storage.fetch_job import CannotGoOnError, FetchJob, NoHelpError, Steps
from ledger.archived_history import ArchivedHistory
from ledger.backfill import Backfill
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.ledger import Ledger
from ledger.pull import SegmentPull
from ledger.segments import LOG_FOLDER, segment_base
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.disk.errors import BROKEN, sentence
from runtime.disk.interface import Disk


class HistoryBackfill:
    """Fills what lies before the ledger's start."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        ledger: Ledger,
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
        archived: ArchivedHistory,
        access: ArchiveAccess | None,
        on_whole: Callable[[], None] | None = None,
    ) -> None:
        """`on_failed` stops the node: its disk can't be trusted with names any more.

        `on_whole` is called when nothing is missing any more, if something was. With it, all of the
        history is fetched, also what the archive holds.
        """
        self._archived = archived
        self._access = access
        self._ledger = ledger
        self._on_whole = on_whole
        self._config = config
        self._quorum = quorum
        self._log = log
        self._job = FetchJob(config, clock, quorum, on_failed)
        self._backfill = Backfill(disk, config.cluster_id, ledger.catalogue)
        self._pull: SegmentPull | None = None
        self._turn = 0

    @property
    def note(self) -> str:
        """What is missing; empty: nothing."""
        below = self._missing().log_end
        return f"history before offset {below} is being fetched" if below and self._pull else ""

    def _missing(self) -> LogMark:
        """Return the mark before which history is missing."""
        run = self._ledger.catalogue.run
        if not run:
            return LogMark.beginning(self._config.cluster_id)
        mark = run[0].header.previous
        return mark if self._on_whole is not None else self._archived.start(mark)

    def start(self) -> None:
        """Fetch what is missing, if anything is."""
        if self._missing().log_end:
            self._job.start(self._steps())

    def stop(self) -> None:
        """Stop. What was fetched of a segment stays for another time."""
        self._job.stop()
        self._pull = None

    def _steps(self) -> Steps[None]:
        while self._missing().log_end:
            try:
                yield from self._get_newest()
            except NoHelpError:
                yield from self._job.pause()
        if self._on_whole is not None:
            self._on_whole()

    def _get_newest(self) -> Steps[None]:
        """Get the newest segment that is missing. Raises NoHelpError, CannotGoOnError."""
        missing = self._missing()
        archived = yield from self._archived_below(missing.log_end)
        try:
            source = self._next_peer()
            peers = yield from self._bases_of(source)
        except NoHelpError:
            if not archived:
                raise
            source, peers = -1, []
        at_peer = max((base for base in peers if base < missing.log_end), default=-1)
        joins = missing.log_end == self._ledger.log_start
        if self._access is not None and archived and archived[-1] >= at_peer:
            if self._on_whole is None:
                yield from self._note_archived(self._access, archived[-1], missing)
            else:
                yield from self._fetch_newest(source, archived, self._access)
        elif joins:
            yield from self._fetch_newest(source, peers, None)
        else:
            # Between what the peer has and what is here lies the archive's part.
            raise NoHelpError

    def _archived_below(self, offset: int) -> Steps[list[int]]:
        """Return the base offsets of the archive's segments before an offset; none if it fails."""
        if self._access is None:
            return []
        try:
            bases = yield from self._access.bases()
        except ArchiveUnavailableError as error:
            self._log.warning("backfill_refused", source="archive", reason=str(error))
            return []
        return [base for base in bases if base < offset]

    def _bases_of(self, source: int) -> Steps[list[int]]:
        sizes = yield from self._job.list_files(source, LOG_FOLDER)
        return sorted(base for name in sizes if (base := segment_base(name)) is not None)

    def _note_archived(self, access: ArchiveAccess, base: int, end: LogMark) -> Steps[None]:
        """Verify a segment in the archive, and write its receipt. Raises NoHelpError."""
        try:
            receipt = yield from access.verify(self._job, base, None, end)
            if receipt is None:
                # The segment behind it is missing in the archive, and no peer has it now.
                raise NoHelpError
            place = access.location
            yield from self._job.written(lambda done: self._archived.store(receipt, place, done))
        except (ArchiveUnavailableError, LedgerError, OSError) as error:
            self._log.warning("backfill_refused", source="archive", reason=str(error))
            raise NoHelpError from error
        self._log.info("history_found_archived", from_offset=base)

    def _next_peer(self) -> int:
        """Return the peer whose turn it is. Raises NoHelpError when there is none."""
        peers = [v.node_id for v in self._quorum.voters() if v.node_id != self._config.node_id]
        if not peers:
            raise NoHelpError
        self._turn += 1
        return peers[(self._turn - 1) % len(peers)]

    def _fetch_newest(
        self, source: int, bases: list[int], access: ArchiveAccess | None
    ) -> Steps[None]:
        """Fetch the newest segment that is missing, from a peer or from the archive.

        Raises NoHelpError, CannotGoOnError.
        """
        pull = self._pull = self._backfill.next_pull(bases)
        if pull is None:
            raise NoHelpError
        with closing(pull):
            yield from self._job.in_slices(pull.prepare())
            try:
                if access is None:
                    yield from self._job.fill(pull, source, f"{LOG_FOLDER}/{pull.name}")
                else:
                    yield from access.fill(pull)
                yield from self._job.written(pull.place)
            except ArchiveUnavailableError as error:
                self._log.warning("backfill_refused", source="archive", reason=str(error))
                raise NoHelpError from error
            except (LedgerError, OSError) as error:
                self._log.warning("backfill_refused", source=source, reason=str(error))
                # What a failed sync leaves behind must never be synced again.
                _discard(pull)
                raise NoHelpError from error
        self._pull = None
        self._adopt(pull, source)
        self._log.info("history_backfilled", from_offset=self._backfill.wanted_below)

    def _adopt(self, pull: SegmentPull, source: int) -> None:
        try:
            self._backfill.adopt(pull)
        except OSError as error:
            if error.errno in BROKEN:
                message = sentence(error, "noting what is missing of the history")
                raise CannotGoOnError(message) from error
            # The segment is in place. The next segment, or the next start, notes it.
            self._log.warning("backfill_refused", source=source, reason=str(error))


def _discard(pull: SegmentPull) -> None:
    try:
        pull.discard()
    except OSError as error:
        if error.errno in BROKEN:
            message = sentence(error, "throwing away what was fetched of the history")
            raise CannotGoOnError(message) from error
