"""Fetches a damaged segment again from a peer or the archive, and those that are gone behind it.

Rule: synced bytes that are wrong or gone are never skipped. A peer's segment replaces them; the
chain hash that it must end in proves it. Until then nothing that needs these bytes is answered.

It is not known how many segments are gone. If a peer's copy of the named segment ends rightly, but
before the next segment that is here, the segment behind it is gone too. So we fetch that one first,
and so on. What is here proves the last one; then we come back for the one before it.
"""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.archive_access import ArchiveAccess, ArchiveUnavailableError
from controller.storage.damage import LEDGER, DamageRecord
from controller.storage.fetch_job import FetchJob, NoHelpError, Steps
from ledger.backfill import mend
from ledger.chain import LogMark
from ledger.checker import BadSegmentError
from ledger.errors import DamagedLedgerError, LedgerError
from ledger.pull import SegmentPull
from ledger.segments import LOG_FOLDER, segment_name
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.disk.interface import Disk

_ARCHIVE = -2
"""Among the sources, beside the ids of nodes."""
_PAUSE_FIRST_S = 1.0
_PAUSE_MOST_S = 60.0


def _ignore(_pull: SegmentPull) -> None:
    """Do nothing: the default of `on_placed`."""


class Mending:
    """Mends one segment at a time."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        damage: DamageRecord,
        access: ArchiveAccess | None,
        log: FilteringBoundLogger,
    ) -> None:
        self._damage = damage
        self._access = access
        self._config = config
        self._disk = disk
        self._quorum = quorum
        self._log = log
        self._job = FetchJob(config, clock, quorum)
        self._pull: SegmentPull | None = None
        self._turn = 0
        self._source = -1
        self._pause_s = _PAUSE_FIRST_S
        self.note = ""
        """What is being mended; empty: nothing."""

    def begin(
        self,
        error: DamagedLedgerError,
        mark: LogMark,
        on_mended: Callable[[], None],
        on_placed: Callable[[SegmentPull], None] = _ignore,
    ) -> None:
        """Fetch the damaged segment again, however long it takes. One that is under way goes on.

        `on_placed` is called after each segment that is put in place, `on_mended` at the end.
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
        self.note = f"a damaged segment is being fetched again: {error}"
        self._pause_s = _PAUSE_FIRST_S
        self._job.start(self._steps(error.base_offset, mark, on_mended, on_placed))

    def stop(self) -> None:
        """Stop. What was fetched stays for another time."""
        self._job.stop()
        self.note = ""
        self._close_pull()

    def _close_pull(self) -> None:
        if self._pull is not None:
            self._pull.close()
            self._pull = None

    def _peers(self) -> list[int]:
        configured = sorted(self._config.controller_urls) or [
            voter.node_id for voter in self._quorum.voters()
        ]
        peers = [node_id for node_id in configured if node_id != self._config.node_id]
        return peers if self._access is None else [*peers, _ARCHIVE]

    def _steps(
        self,
        named: int,
        mark: LogMark,
        on_mended: Callable[[], None],
        on_placed: Callable[[SegmentPull], None],
    ) -> Steps[None]:
        """Mend the segment that begins at `named`, and first those that are gone behind it."""
        base = named
        while True:
            try:
                follows = yield from self._fetch(base, named, mark, on_placed)
            except OSError as error:
                yield from self._pause_for_disk(base, error)
                yield from self._throw_away(base)
                continue
            if not self.note:
                return  # `on_placed` has stopped the node
            if follows is None:
                break
            base = follows
        self.note = ""
        on_mended()

    def _fetch(
        self, base: int, named: int, mark: LogMark, on_placed: Callable[[SegmentPull], None]
    ) -> Steps[int | None]:
        """Fetch the segment that begins at `base`, up to the next one that is here.

        Returns the base offset of the segment to fetch next; None: all is mended. Raises OSError.
        """
        self._close_pull()
        pull = self._pull = mend(self._disk, self._config.cluster_id, base, mark)
        name = f"{LOG_FOLDER}/{pull.name}"
        own = name if self._disk.exists(name) else None
        yield from self._job.in_slices(pull.prepare(own))
        asked = 0
        while base == named or asked < len(self._peers()):
            self._source = self._next_peer()
            asked += 1
            try:
                if self._source == _ARCHIVE:
                    yield from self._fill_archived(pull)
                else:
                    yield from self._job.fill(pull, self._source, name)
                yield from self._job.written(pull.place)
            except NoHelpError:
                pass
            except LedgerError as error:
                if isinstance(error, BadSegmentError) and error.torn and error.offset > base:
                    # The peer's segment ends rightly there: the one that follows is gone here too.
                    return error.offset
                self._log.warning("mending_refused", source=self._source, reason=str(error))
                pull.discard()
            else:
                self._pull = None
                self._placed(pull, on_placed)
                return None if base == named else named
            yield from self._job.pause()
        # No peer has a segment that begins at `base`: fetch the named one once more.
        yield from self._throw_away(named)
        return named

    def _fill_archived(self, pull: SegmentPull) -> Steps[None]:
        assert self._access is not None
        try:
            yield from self._access.fill(pull)
        except ArchiveUnavailableError as error:
            raise NoHelpError from error

    def _throw_away(self, base: int) -> Steps[None]:
        """Discard what was fetched: what a failed sync leaves behind must never be synced again."""
        while self._pull is not None:
            try:
                self._pull.discard()
            except OSError as error:
                yield from self._pause_for_disk(base, error)
            else:
                return

    def _next_peer(self) -> int:
        peers = self._peers()
        self._turn += 1
        return peers[(self._turn - 1) % len(peers)]

    def _placed(self, pull: SegmentPull, on_placed: Callable[[SegmentPull], None]) -> None:
        self._pause_s = _PAUSE_FIRST_S
        self._log.warning("ledger_mended", file=pull.name, source=self._source)
        source = "the archive" if self._source == _ARCHIVE else f"controller {self._source}"
        self._damage.mended(LEDGER, f"{pull.name} fetched from {source}")
        on_placed(pull)

    def _pause_for_disk(self, base: int, error: OSError) -> Steps[None]:
        """Our own disk refused. It may take the segment later: a full disk may have room then."""
        self._log.warning("mending_refused", source=self._source, reason=str(error))
        name = segment_name(base)
        self.note = f"{name} can't be put in place yet, it is tried again: {error}"
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _PAUSE_MOST_S)
        yield from self._job.pause(pause_s)
