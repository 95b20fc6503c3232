"""The scrub reads all files at rest now and then, to find damage while the peers' copies are sound.

It reads closed segments of the ledger, checkpoints, and closed segments of the journal, in small
pieces, at no more than `scrub_bytes_per_s`. Everything else runs between two pieces.

Rule: a file that seems damaged is read a second time. If it is still bad, the scrub reports it to
`Finds`; the scrub itself changes no file but its own.

The file `scrubbed` says how far the pass has come, so that a node that restarts every day also
reaches the end of its history. Losing that file loses nothing.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Protocol

import msgspec
from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from ledger.errors import DamagedLedgerError
from ledger.ledger import Ledger
from ledger.scrub import next_closed, scrub_segment
from quorum.journal.damage import DamagedError
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointNotFoundError, DamagedCheckpointError
from snapshots.store import CheckpointStore, load_steps

FILE = "scrubbed"
_FIRST_AFTER_S = 60.0
"""Leaves the disk to what a start needs."""
_AGAIN_AFTER_DAMAGE_S = 600.0
_WRITE_EVERY_S = 60.0


class Progress(msgspec.Struct, array_like=True):
    """What the file holds."""

    finished_ms: int = 0
    """When a pass without damage ended last, milliseconds since 1970; 0: never."""
    next_offset: int = 0
    """Ledger segments before this offset are done in the current pass; 0: no pass is under way."""
    found: int = 0
    """Files that this pass found damaged. Only a pass that finds none sets `finished_ms`."""


class Finds(Protocol):
    """Receives the damage that the scrub finds."""

    def ledger_rotten(self, error: DamagedLedgerError) -> None:
        """A closed segment of the ledger is damaged."""

    def checkpoint_rotten(self, checkpoint: CheckpointId, error: DamagedCheckpointError) -> None:
        """A checkpoint is damaged."""

    def journal_rotten(self, error: DamagedError) -> None:
        """A closed segment of the journal is damaged."""


class Scrubbing:
    """Runs one pass after another over the files that are there when their turn comes."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        scrub_journal: Callable[[], Generator[int, None, None]],
        finds: Finds,
        log: FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._disk = disk
        self._scrub_journal = scrub_journal
        self._finds = finds
        self._log = log
        self._ledger: Ledger | None = None
        self._store: CheckpointStore | None = None
        self._work: Iterator[int] = iter(())
        self._timer: Timer | None = None
        self._progress = Progress()
        self._written_at = clock.monotonic()
        self.bytes = 0
        """Bytes read since the start of the process."""
        self.damaged = 0
        """Files found damaged since the start of the process."""

    @property
    def finished_ms(self) -> int:
        """When a pass without damage ended last, milliseconds since 1970; 0: never."""
        return self._progress.finished_ms

    def begin(self, ledger: Ledger, store: CheckpointStore) -> None:
        """Begin with this ledger and these checkpoints, at a start or after a catch-up."""
        self.stop()
        if not self._config.scrub_bytes_per_s:
            return
        self._ledger, self._store = ledger, store
        self._progress = self._read_progress()
        wait_s = _FIRST_AFTER_S
        if self._progress.finished_ms and not self._progress.next_offset:
            since_s = (self._clock.wall_ms() - self._progress.finished_ms) / 1000
            wait_s = max(wait_s, self._config.scrub_interval_s - max(since_s, 0.0))
        self._again(min(wait_s, self._config.scrub_interval_s))

    def stop(self) -> None:
        """Stop reading."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ledger = self._store = None
        self._work = iter(())

    def _again(self, wait_s: float) -> None:
        self._timer = self._clock.call_later(wait_s, self._begin_pass)

    def _begin_pass(self) -> None:
        if not self._progress.next_offset:
            self._progress.found = 0
        self._work = self._pass()
        self._step()

    def _step(self) -> None:
        """Read one piece, then wait as long as the piece takes at `scrub_bytes_per_s`."""
        work = self._work
        size = next(work, None)
        if work is not self._work or self._ledger is None:
            return  # what was found has stopped the scrub, or begun another pass
        if size is None:
            self._finished()
            return
        self.bytes += size
        self._timer = self._clock.call_later(size / self._config.scrub_bytes_per_s, self._step)

    def _finished(self) -> None:
        found, interval_s = self._progress.found, self._config.scrub_interval_s
        finished_ms = self._progress.finished_ms if found else self._clock.wall_ms()
        self._progress = Progress(finished_ms)
        self._write_progress()
        self._log.info("scrub_finished", bytes=self.bytes, damaged=found)
        self._again(min(interval_s, _AGAIN_AFTER_DAMAGE_S) if found else interval_s)

    # -- a pass ---------------------------------------------------------------------------

    def _pass(self) -> Iterator[int]:
        yield from self._ledger_segments()
        yield from self._checkpoints()
        try:
            yield from self._twice(self._scrub_journal)
        except DamagedError as error:
            self._count()
            self._finds.journal_rotten(error)

    def _ledger_segments(self) -> Iterator[int]:
        offset = self._progress.next_offset
        while self._ledger is not None:
            found = next_closed(self._ledger.catalogue, offset)
            if found is None:
                return
            segment, after = found
            end = after.header.previous
            read = partial(scrub_segment, self._disk, self._config.cluster_id, segment, end)
            try:
                yield from self._twice(read)
            except DamagedLedgerError as error:
                self._count()
                self._finds.ledger_rotten(error)
                self._written_at = -_WRITE_EVERY_S
            offset = after.base_offset
            self._progress.next_offset = offset
            if self._clock.monotonic() - self._written_at >= _WRITE_EVERY_S:
                self._write_progress()

    def _checkpoints(self) -> Iterator[int]:
        for checkpoint in [] if self._store is None else self._store.list():
            try:
                yield from self._twice(partial(self._checkpoint, checkpoint))
            except CheckpointNotFoundError:
                continue  # removed meanwhile, since newer ones are there
            except DamagedCheckpointError as error:
                self._count()
                self._finds.checkpoint_rotten(checkpoint, error)

    def _checkpoint(self, checkpoint: CheckpointId) -> Generator[int, None, None]:
        before = 0
        steps = load_steps(self._disk, self._config.cluster_id, checkpoint, keep_blocks=False)
        try:
            for position, _ in steps:
                yield position - before
                before = position
        except OSError as error:
            name = f"{FOLDER}/{checkpoint.name}"
            raise DamagedCheckpointError(name, before, str(error)) from None

    def _twice(self, read: Callable[[], Generator[int, None, None]]) -> Iterator[int]:
        """Read. On an error read once more; raise only if that fails too."""
        try:
            yield from read()
        except (DamagedLedgerError, DamagedCheckpointError, DamagedError):
            yield from read()

    def _count(self) -> None:
        self._progress.found += 1
        self.damaged += 1

    # -- how far ----------------------------------------------------------------------------

    def _read_progress(self) -> Progress:
        try:
            return msgspec.msgpack.decode(self._disk.read(FILE), type=Progress)
        except (OSError, msgspec.DecodeError):
            return Progress()

    def _write_progress(self) -> None:
        self._written_at = self._clock.monotonic()
        data = msgspec.msgpack.encode(self._progress)
        # An error is ignored: the file only saves reading the same bytes again.
        self._disk.in_background(lambda: self._disk.replace(FILE, data), lambda _done, _error: None)
