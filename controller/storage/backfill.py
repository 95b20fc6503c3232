"""Fetches the history that a checkpoint skipped from any peer, and verifies it backwards.

Rule: newest first. Each segment must end in the chain hash that the segment after it names, so a
segment is proved before it is put in place. This is work for idle times: one piece at a time, from
one peer after another, and a pause whenever a peer has nothing.
"""

from collections.abc import Callable
from contextlib import closing

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.fetch_job import CannotGoOnError, FetchJob, NoHelpError, Steps
from ledger.backfill import Backfill
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
        on_whole: Callable[[], None] | None = None,
    ) -> None:
        """`on_failed` stops the node: its disk can't be trusted with names any more.

        `on_whole` is called when nothing is missing any more, if something was.
        """
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
        below = self._backfill.wanted_below
        return f"history before offset {below} is being fetched" if below and self._pull else ""

    def start(self) -> None:
        """Fetch what is missing, if anything is."""
        if self._backfill.wanted_below:
            self._job.start(self._steps())

    def stop(self) -> None:
        """Stop. What was fetched of a segment stays for another time."""
        self._job.stop()
        self._pull = None

    def _steps(self) -> Steps[None]:
        while self._backfill.wanted_below:
            try:
                yield from self._fetch_newest(self._next_peer())
            except NoHelpError:
                yield from self._job.pause()
        if self._on_whole is not None:
            self._on_whole()

    def _next_peer(self) -> int:
        """Return the peer whose turn it is. Raises NoHelpError when there is none."""
        peers = [v.node_id for v in self._quorum.voters() if v.node_id != self._config.node_id]
        if not peers:
            raise NoHelpError
        self._turn += 1
        return peers[(self._turn - 1) % len(peers)]

    def _fetch_newest(self, source: int) -> Steps[None]:
        """Fetch the newest segment that is missing. Raises NoHelpError, CannotGoOnError."""
        sizes = yield from self._job.list_files(source, LOG_FOLDER)
        bases = sorted(base for name in sizes if (base := segment_base(name)) is not None)
        pull = self._pull = self._backfill.next_pull(bases)
        if pull is None:
            raise NoHelpError
        with closing(pull):
            yield from self._job.in_slices(pull.prepare())
            try:
                yield from self._job.fill(pull, source, f"{LOG_FOLDER}/{pull.name}")
                yield from self._job.written(pull.place)
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
