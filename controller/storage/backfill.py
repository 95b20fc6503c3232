"""History that a checkpoint skipped, fetched afterwards from any peer, verified backwards.

Rule: newest first; each segment must end in the chain hash that the one after it names. It is
slow work for idle times: one piece at a time, and a pause whenever a peer has nothing.
"""

from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.peer_files import PeerFiles
from ledger.backfill import Backfill
from ledger.errors import LedgerError
from ledger.ledger import Ledger
from ledger.pull import SegmentPull
from ledger.segments import LOG_FOLDER, segment_base
from quorum.api import PeerFile, Quorum
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.disk_errors import BROKEN, sentence
from runtime.slices import run_in_slices


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
        self._on_failed = on_failed
        self._on_whole = on_whole
        self._config = config
        self._clock = clock
        self._quorum = quorum
        self._log = log
        self._files = PeerFiles(config, clock, quorum)
        self._backfill = Backfill(disk, config.cluster_id, ledger.catalogue)
        self._pull: SegmentPull | None = None
        self._turn = 0
        self._source = -1
        self._stopped = False

    @property
    def note(self) -> str:
        """What is missing; empty: nothing."""
        below = self._backfill.wanted_below
        return f"history before offset {below} is being fetched" if below and self._pull else ""

    def start(self) -> None:
        """Fetch what is missing, if anything is."""
        if self._stopped or not self._backfill.wanted_below:
            return
        peers = [v.node_id for v in self._quorum.voters() if v.node_id != self._config.node_id]
        if not peers:
            self._files.later(self.start)
            return
        self._source = peers[self._turn % len(peers)]
        self._turn += 1
        self._files.list(self._source, LOG_FOLDER, self._listed, self.start)

    def stop(self) -> None:
        """Stop; what was fetched of a segment stays for another time."""
        self._stopped = True
        self._files.stop()
        if self._pull is not None:
            self._pull.close()
            self._pull = None

    def _listed(self, names: Sequence[tuple[str, int]]) -> None:
        bases = sorted(base for name, _ in names if (base := segment_base(name)) is not None)
        self._pull = self._backfill.next_pull(bases)
        if self._pull is None:
            self._files.later(self.start)
            return
        run_in_slices(self._clock, self._pull.prepare(), self._files.guarded(self._next))

    def _next(self) -> None:
        pull = self._pull
        assert pull is not None
        if pull.complete:
            pull.place(lambda error: self._placed(pull, error))
            return
        name = f"{LOG_FOLDER}/{pull.name}"
        self._files.read(self._source, name, pull.position, self._take, self.start)

    def _take(self, piece: PeerFile) -> None:
        pull = self._pull
        assert pull is not None
        try:
            pull.add(piece.data)
        except (LedgerError, OSError) as error:
            self._refused(pull, error)
            return
        self._next()

    def _refused(self, pull: SegmentPull, error: Exception) -> None:
        """Begin the segment anew after a pause: what a failed sync leaves is never synced again."""
        self._log.warning("backfill_refused", source=self._source, reason=str(error))
        try:
            pull.discard()
        except OSError as failure:
            if failure.errno in BROKEN:
                self._on_failed(sentence(failure, "throwing away what was fetched of the history"))
                return
        self._files.later(self.start)

    def _placed(self, pull: SegmentPull, error: OSError | None) -> None:
        if self._stopped:
            return
        self._pull = None
        if error is not None:
            self._refused(pull, error)
            pull.close()
            return
        try:
            self._backfill.adopt(pull)
        except OSError as failure:
            if failure.errno in BROKEN:
                self._on_failed(sentence(failure, "noting what is missing of the history"))
                return
            # The segment is here; the next one, or the next start, notes it.
            self._log.warning("backfill_refused", source=self._source, reason=str(failure))
        self._log.info("history_backfilled", from_offset=self._backfill.wanted_below)
        if self._backfill.wanted_below == 0 and self._on_whole is not None:
            self._on_whole()
        else:
            self.start()
