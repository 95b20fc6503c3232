"""A damaged segment is fetched again from a peer, and those that are gone behind it.

Rule: bytes that were synced and are wrong or gone are never skipped: the segment is replaced by a
peer's, proved by the chain hash that it must end in. Until then nothing that needs it is answered.

How many are gone is not known. Where a peer's copy of the one that was named ends rightly, and
yet before the next one that is here, we move on to the one that must follow it, and so on; the
last one is proved by what is here, and then we come back for the one before it.

Where our own disk refuses what was fetched, it is thrown away and fetched again after a pause that
grows: what a failed sync leaves behind is never synced again, and a full disk may have room later.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.damage import LEDGER, DamageRecord
from controller.storage.peer_files import PeerFiles
from ledger.backfill import mend
from ledger.chain import LogMark
from ledger.checker import BadSegmentError
from ledger.errors import DamagedLedgerError, LedgerError
from ledger.pull import SegmentPull
from ledger.segments import LOG_FOLDER, segment_name
from quorum.api import PeerFile, Quorum
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.slices import run_in_slices

_PAUSE_FIRST_S = 1.0
_PAUSE_MOST_S = 60.0


def _nothing(_pull: SegmentPull) -> None:
    """Nobody wants to know."""


class Mending:
    """Mends one segment at a time."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        damage: DamageRecord,
        log: FilteringBoundLogger,
    ) -> None:
        self._damage = damage
        self._config = config
        self._clock = clock
        self._disk = disk
        self._quorum = quorum
        self._log = log
        self._files = PeerFiles(config, clock, quorum)
        self._pull: SegmentPull | None = None
        self._on_mended: Callable[[], None] | None = None
        self._on_placed: Callable[[SegmentPull], None] = _nothing
        self._mark: LogMark | None = None
        self._base_offset = 0
        """Of the segment that was named."""
        self._at = 0
        """Of the one that is being fetched: that one, or one behind it."""
        self._turn = 0
        self._asked = 0
        """Peers that were asked for the segment that is being tried now."""
        self._source = -1
        self._pause_s = _PAUSE_FIRST_S
        self.note = ""
        """What is being mended; empty: nothing."""

    def begin(
        self,
        error: DamagedLedgerError,
        mark: LogMark,
        on_mended: Callable[[], None],
        on_placed: Callable[[SegmentPull], None] = _nothing,
    ) -> None:
        """Fetch the damaged segment again, however long it takes. One that is under way goes on.

        `on_placed` is called behind each segment that is put in place, `on_mended` at the end.
        Raises LedgerError when no peer could help: the error says what to do.
        """
        if self.note:
            return
        if error.base_offset < 0 or not self._peers():
            raise error
        self._log.error(
            "ledger_damaged", file=error.file, position=error.position, why=error.reason
        )
        self._damage.found(LEDGER, str(error))
        self._mark, self._base_offset = mark, error.base_offset
        self._on_mended, self._on_placed = on_mended, on_placed
        self.note = f"a damaged segment is being fetched again: {error}"
        self._pause_s = _PAUSE_FIRST_S
        self._begin_at(error.base_offset)

    def _begin_at(self, base_offset: int) -> None:
        """Fetch the segment that begins there, up to the next one that is here."""
        assert self._mark is not None
        if self._pull is not None:
            self._pull.close()
            self._pull = None
        self._at, self._asked = base_offset, 0
        try:
            self._pull = mend(self._disk, self._config.cluster_id, base_offset, self._mark)
        except OSError as error:
            self._not_taken(error)
            return
        own = f"{LOG_FOLDER}/{self._pull.name}"
        good = self._pull.prepare(own if self._disk.exists(own) else None)
        run_in_slices(self._clock, good, self._files.guarded(self._ask))

    def stop(self) -> None:
        """Stop; what was fetched stays for another time."""
        self._files.stop()
        self.note = ""
        if self._pull is not None:
            self._pull.close()
            self._pull = None

    def _peers(self) -> list[int]:
        configured = sorted(self._config.controller_urls) or [
            voter.node_id for voter in self._quorum.voters()
        ]
        return [node_id for node_id in configured if node_id != self._config.node_id]

    def _ask(self) -> None:
        """Begin, or begin again with the next peer."""
        peers = self._peers()
        if self._at > self._base_offset and self._asked >= len(peers):
            # Nobody has what was said to follow: begin anew.
            self._at = self._base_offset
            self._anew()
            return
        self._source = peers[self._turn % len(peers)]
        self._turn += 1
        self._asked += 1
        self._next()

    def _next(self) -> None:
        pull = self._pull
        assert pull is not None
        if pull.complete:
            pull.place(self._placed)
            return
        name = f"{LOG_FOLDER}/{pull.name}"
        self._files.read(self._source, name, pull.position, self._take, self._ask)

    def _take(self, piece: PeerFile) -> None:
        pull = self._pull
        assert pull is not None
        try:
            pull.add(piece.data)
        except BadSegmentError as error:
            if error.torn and error.offset > self._at:
                # The peer's ends there rightly: the one that follows it is gone here as well.
                self._begin_at(error.offset)
                return
            self._refuse(pull, error)
        except LedgerError as error:
            self._refuse(pull, error)
        except OSError as error:
            self._not_taken(error)
        else:
            self._next()

    def _refuse(self, pull: SegmentPull, error: LedgerError) -> None:
        self._log.warning("mending_refused", source=self._source, reason=str(error))
        try:
            pull.discard()
        except OSError as failure:
            self._not_taken(failure)
        else:
            self._files.later(self._ask)

    def _placed(self, error: OSError | None) -> None:
        if self._pull is None:
            return
        if error is not None:
            self._not_taken(error)
            return
        pull, self._pull = self._pull, None
        self._pause_s = _PAUSE_FIRST_S
        self._log.warning("ledger_mended", file=pull.name, source=self._source)
        self._damage.mended(LEDGER, f"{pull.name} fetched from controller {self._source}")
        self._on_placed(pull)
        if not self.note:
            return  # it has ended the node
        if self._at > self._base_offset:
            self._begin_at(self._base_offset)
            return
        self.note = ""
        on_mended, self._on_mended = self._on_mended, None
        if on_mended is not None:
            on_mended()

    def _not_taken(self, error: OSError) -> None:
        """Our own disk refused: begin the segment anew after a while."""
        self._log.warning("mending_refused", source=self._source, reason=str(error))
        name = segment_name(self._at)
        self.note = f"{name} can't be put in place yet, it is tried again: {error}"
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _PAUSE_MOST_S)
        self._files.later(self._anew, pause_s)

    def _anew(self) -> None:
        try:
            if self._pull is not None:
                self._pull.discard()
        except OSError as error:
            self._not_taken(error)
        else:
            self._begin_at(self._at)
