"""The snapshots that Kafka's brokers load: each is projected from a checkpoint once, and cached.

Rule: a snapshot is projected when the first broker needs one, in slices. Its bytes go into a file
in this controller's folder, but what holds secrets in clear stays in memory (ADR 0031). The newest
two are kept, because a broker may be loading the older one. The files are only a cache: at a start
all of them are removed, and they are projected again when they are needed.
"""

from collections.abc import Callable, Generator
from typing import Final

from structlog.typing import FilteringBoundLogger

from kafka_listener.projection.batch_projection import BatchProjection
from kafka_listener.projection.snapshot_projection import SnapshotProjection
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError
from runtime.clock import Clock
from runtime.disk.interface import AppendFile, Disk
from runtime.loop.slices import SlicedWork
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError
from snapshots.store import CheckpointStore, load_steps, without_progress

FOLDER: Final = "kafka-snapshots"
_KEPT: Final = 2
_AGAIN_S: Final = 1.0
"""Pause after a snapshot could not be projected."""


class ProjectedSnapshot:
    """A snapshot that can be fetched."""

    def __init__(self, disk: Disk, checkpoint: CheckpointId) -> None:
        self.id = checkpoint
        self.name = f"{FOLDER}/{checkpoint}.snapshot"
        self._disk = disk
        self._file: AppendFile | None = disk.open(self.name)
        self._file_bytes = 0
        self._tail = bytearray()

    @property
    def size(self) -> int:
        """Its bytes."""
        return self._file_bytes + len(self._tail)

    def append(self, data: bytes, *, on_disk: bool) -> None:
        """Add the next bytes. Raises OSError."""
        if not on_disk:
            self._tail += data
            return
        assert self._file is not None
        assert not self._tail, "what is in memory only stands last"
        self._file.append(data)
        self._file_bytes += len(data)

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from a position. Raises OSError."""
        found = b""
        if position < self._file_bytes:
            most = min(length, self._file_bytes - position)
            found = self._disk.read(self.name, position, most)
        if len(found) < length:
            start = max(position + len(found) - self._file_bytes, 0)
            found += bytes(self._tail[start : start + length - len(found)])
        return found

    def close(self) -> None:
        """Nothing is added any more."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def remove(self) -> None:
        """Remove the file. Raises OSError."""
        self.close()
        if self._disk.exists(self.name):
            self._disk.unlink(self.name)


class ProjectedSnapshots:
    """The snapshots of one controller."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        cluster_id: str,
        projection: BatchProjection,
        checkpoints: Callable[[], CheckpointStore | None],
        on_ready: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`checkpoints` returns the checkpoints here. `on_ready`: a snapshot was projected."""
        self._clock = clock
        self._disk = disk
        self._cluster_id = cluster_id
        self._projection = projection
        self._checkpoints = checkpoints
        self._on_ready = on_ready
        self._log = log
        self._kept: list[ProjectedSnapshot] = []
        self._building: ProjectedSnapshot | None = None
        self._work: SlicedWork | None = None
        self._tidy = False
        self._rests_until = 0.0

    def offer(self, from_offset: int) -> CheckpointId | None:
        """Return a snapshot at `from_offset` or behind it; None: there is none yet.

        Then the newest checkpoint is projected, and `on_ready` is called.
        """
        for snapshot in reversed(self._kept):
            if snapshot.id.offset >= from_offset:
                return snapshot.id
        store = self._checkpoints()
        newest = None if store is None else store.newest()
        if newest is not None and newest.offset >= from_offset:
            self._build(newest)
        return None

    def find(self, offset: int, epoch: int) -> ProjectedSnapshot | None:
        """Return the snapshot with this id; None: it is not here."""
        return next((one for one in self._kept if one.id == (offset, epoch)), None)

    def forget_before(self, offset: int) -> None:
        """Offer no snapshot of a state before an offset any more, and drop what is kept of them."""
        if self._building is not None and self._building.id.offset < offset:
            if self._work is not None:
                self._work.cancel()
                self._work = None
            self._building.close()
            self._building = None
        for snapshot in [each for each in self._kept if each.id.offset < offset]:
            self._kept.remove(snapshot)
            snapshot.close()
        self._tidy = False

    def stop(self) -> None:
        """Give up a snapshot that is being projected. The files stay, for the next start."""
        if self._work is not None:
            self._work.cancel()
            self._work = None
        for snapshot in (*self._kept, *filter(None, (self._building,))):
            snapshot.close()
        self._kept, self._building = [], None

    def _build(self, checkpoint: CheckpointId) -> None:
        if self._work is None and self._clock.monotonic() >= self._rests_until:
            self._work = SlicedWork(self._clock, self._project(checkpoint), self._built)
            self._work.begin()

    def _project(self, checkpoint: CheckpointId) -> Generator[None, None, None]:
        try:
            self._remove_leftovers()
            loaded = yield from without_progress(
                load_steps(self._disk, self._cluster_id, checkpoint)
            )
            self._building = ProjectedSnapshot(self._disk, checkpoint)
            projecting = SnapshotProjection(self._projection, loaded.header)
            for piece in projecting.pieces(loaded.records()):
                if piece is not None:
                    self._building.append(piece.data, on_disk=not piece.secret)
                yield
            self._building.close()
            for old in self._kept[: 1 - _KEPT]:
                old.remove()
            self._kept = [*self._kept[1 - _KEPT :], self._building]
        except (OSError, LedgerError, CheckpointError, RecordDecodeError) as error:
            self._give_up(checkpoint, error)
        self._building = None

    def _give_up(self, checkpoint: CheckpointId, error: Exception) -> None:
        """Remove what was written, and try again after a pause when a broker asks."""
        self._log.error("kafka_snapshot_failed", checkpoint=str(checkpoint), error=str(error))
        self._rests_until = self._clock.monotonic() + _AGAIN_S
        if self._building is not None:
            self._building.close()
            self._tidy = False

    def _built(self) -> None:
        self._work = None
        self._on_ready()

    def _remove_leftovers(self) -> None:
        """Remove the files of an earlier process, and of a projection that failed."""
        if self._tidy:
            return
        self._disk.make_folder(FOLDER)
        kept = {snapshot.name for snapshot in self._kept}
        for name in self._disk.list(FOLDER):
            if f"{FOLDER}/{name}" not in kept:
                self._disk.unlink(f"{FOLDER}/{name}")
        self._tidy = True
