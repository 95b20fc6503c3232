"""Keeps the agent's image on disk, so that the agent fetches only newer records after a restart.

Rule: the agent compares a loaded image with the state hash in its file. It removes an image that
doesn't match, and uses the previous one or fetches from the cluster. The image on disk only saves
time: losing it costs a fetch. If the cluster's history is not the one that the image follows, the
image is kept as evidence (`evidence`), and never loaded again.

The folder belongs to one broker of one cluster and records which. The agent refuses a folder of
another broker, since it would load that broker's image.
"""

from collections.abc import Callable, Generator

import msgspec
import structlog

from broker_agent.config import AgentConfig
from broker_agent.evidence import Evidence
from broker_agent.view import PlacedImage
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError
from metadata.image import MetadataImage, ReplayError
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.loop.slices import SlicedWork
from snapshots.checkpoint import FOLDER, CheckpointHeader, CheckpointId
from snapshots.errors import CheckpointError
from snapshots.loading import image_of
from snapshots.packing import format_of
from snapshots.store import (
    CheckpointStore,
    LoadedCheckpoint,
    load_steps,
    without_progress,
)

SAVED_IMAGE_UNUSABLE = "saved_image_unusable"
OWNER_FILE = "agent.json"
_KEPT = 2
_NO_MORE = 2**62
_HASH_BYTES = 32
_ERRORS = (CheckpointError, LedgerError, RecordDecodeError, ReplayError, OSError)

OnLoaded = Callable[[PlacedImage | None, str], None]


class WrongFolderError(Exception):
    """The folder belongs to another broker, or to another cluster."""


class _Owner(msgspec.Struct, frozen=True):
    cluster_id: str
    broker_id: int


class ImageStore:
    """Saves and loads the image.

    It saves after enough new records, or enough time, and at an orderly end. Both take slices. At
    most one load and one save run at a time.
    """

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        disk: Disk,
        log: structlog.typing.FilteringBoundLogger,
        on_released: Callable[[MetadataImage], None] = lambda _: None,
    ) -> None:
        """`on_released` gets each image that was saved, when the save has ended."""
        self._config = config
        self._on_released = on_released
        self._clock = clock
        self._disk = disk
        self._log = log
        self._store: CheckpointStore | None = None
        self._saved_offset = 0
        """The offset of the newest image on disk."""
        self._tried_offset = 0
        self._tried_at = clock.monotonic()
        self._after_writing: Callable[[], None] | None = None
        self._loading: SlicedWork | None = None
        self.evidence = Evidence(config, clock, disk, log)
        """What is kept of histories that the cluster no longer has."""

    @property
    def loading(self) -> bool:
        """Whether an image is being loaded."""
        return self._loading is not None

    def open(self) -> None:
        """Lock the folder. Raises OSError, FolderInUseError, WrongFolderError."""
        self._disk.lock()
        self._check_owner()
        self._store = CheckpointStore(self._disk, self._config.cluster_id, self._clock, self._log)
        self.evidence.open()

    def load(self, on_loaded: Callable[[PlacedImage | None], None]) -> None:
        """Load the newest image on disk that is sound. `on_loaded` gets None if there is none."""
        assert self._store is not None, "open the folder first"
        newest_first = self._store.list()[::-1]
        found: list[PlacedImage] = []

        def work() -> Generator[None, None, None]:
            for checkpoint in newest_first:
                try:
                    found.append((yield from self._loaded(checkpoint)))
                except _ERRORS as error:
                    self._log.warning(SAVED_IMAGE_UNUSABLE, image=str(checkpoint), why=str(error))
                    self._remove(checkpoint)
                else:
                    self._note_saved(checkpoint.offset)
                    return

        self._load(work(), lambda: on_loaded(found[0] if found else None), at_once=True)

    def adopt(self, checkpoint: CheckpointId, on_loaded: OnLoaded) -> None:
        """Load a checkpoint that was fetched, in slices.

        `on_loaded` gets the image and "", or None and why the checkpoint can't be loaded.
        """
        found: list[PlacedImage] = []
        problem = ""

        def work() -> Generator[None, None, None]:
            nonlocal problem
            try:
                found.append((yield from self._loaded(checkpoint)))
            except _ERRORS as error:
                problem = str(error)

        def done() -> None:
            if problem:
                self._remove(checkpoint)
                on_loaded(None, problem)
                return
            self._note_saved(checkpoint.offset)
            self._thin_out()
            on_loaded(found[0], "")

        self._load(work(), done, at_once=False)

    def _load(
        self, work: Generator[None, None, None], on_done: Callable[[], None], *, at_once: bool
    ) -> None:
        def done() -> None:
            self._loading = None
            on_done()

        self._loading = SlicedWork(self._clock, work, done)
        self._loading.begin(at_once=at_once)

    def _loaded(self, checkpoint: CheckpointId) -> Generator[None, None, PlacedImage]:
        steps = load_steps(self._disk, self._config.cluster_id, checkpoint)
        loaded = yield from without_progress(steps)
        return (yield from _placed(loaded))

    def stop_loading(self) -> None:
        """Stop a load that is in progress; `on_loaded` is not called."""
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None

    def set_aside(self, newest: PlacedImage, why: str) -> None:
        """Have no image on disk any more, because they differ from the cluster's state.

        They are kept as evidence, with the newest image and `why`, as long as there is room for it.
        """
        self.stop_loading()
        if self._store is not None:
            self._store.cancel()
            saved = self._store.list()
            if not self.evidence.keep(newest, self._header_of(newest), saved, why):
                for checkpoint in self._store.list():
                    self._remove(checkpoint)
        self._saved_offset = self._tried_offset = 0

    def save_if_due(self, newest: PlacedImage) -> None:
        """Save in the background if enough records have come, or enough time has passed."""
        records = newest.mark.log_end - self._tried_offset
        age_ms = (self._clock.monotonic() - self._tried_at) * 1000
        late = records > 0 and age_ms >= self._config.image_ms_between_saves
        if late or records >= self._config.image_records_between_saves:
            self._save(newest, lambda: None)

    def save_at_end(self, newest: PlacedImage, on_done: Callable[[], None]) -> None:
        """Save after a save that is in progress; call `on_done` in any case, also on failure."""
        if self._store is not None and self._store.writing:
            self._after_writing = lambda: self._save(newest, on_done)
        else:
            self._save(newest, on_done)

    def close(self) -> None:
        """Stop what is in progress. The store calls nobody back any more."""
        self.stop_loading()
        self._after_writing = None
        self.evidence.close()
        if self._store is not None:
            self._store.cancel()
            self._store = None

    def _save(self, newest: PlacedImage, on_done: Callable[[], None]) -> None:
        store, image, mark = self._store, newest.image, newest.mark
        header = self._header_of(newest)
        if store is None or store.writing or header is None or mark.log_end <= self._saved_offset:
            on_done()
            return

        def written(checkpoint: CheckpointId | None, _error: OSError | None) -> None:
            # Seconds have passed. This may be the last reference to the image.
            self._on_released(image)
            if checkpoint is not None:
                self._saved_offset = max(self._saved_offset, checkpoint.offset)
                self._thin_out()
            after, self._after_writing = self._after_writing, None
            on_done()
            if after is not None:
                after()

        # After a failed save, try again when the next one is due, and not at every batch.
        self._tried_offset = mark.log_end
        self._tried_at = self._clock.monotonic()
        store.write_image(header, image, written, for_brokers=True)

    def _header_of(self, placed: PlacedImage) -> CheckpointHeader | None:
        """Return the header of an image's file; None if the image can't be written now."""
        image, mark = placed.image, placed.mark
        if image.transaction is not None or image.state_hash is None:
            return None
        return CheckpointHeader(
            cluster_id=self._config.cluster_id,
            offset=mark.log_end,
            epoch=mark.epoch,
            timestamp_ms=mark.timestamp_ms,
            chain_hash=mark.head,
            state_hash=image.state_hash.shared_bytes() + bytes(_HASH_BYTES),
            format=format_of(image),
        )

    def _note_saved(self, offset: int) -> None:
        self._saved_offset = self._tried_offset = offset
        self._tried_at = self._clock.monotonic()

    def _thin_out(self) -> None:
        assert self._store is not None
        try:
            self._store.thin_out(_KEPT, _NO_MORE)
        except OSError as error:
            self._log.warning(SAVED_IMAGE_UNUSABLE, why=f"an old image can't be removed: {error}")

    def _remove(self, checkpoint: CheckpointId) -> None:
        try:
            self._disk.unlink(f"{FOLDER}/{checkpoint.name}")
        except OSError as error:
            self._log.warning(SAVED_IMAGE_UNUSABLE, why=f"the image can't be removed: {error}")

    def _check_owner(self) -> None:
        ours = _Owner(self._config.cluster_id, self._config.broker_id)
        if not self._disk.exists(OWNER_FILE):
            self._disk.replace(OWNER_FILE, msgspec.json.encode(ours))
            return
        try:
            owner = msgspec.json.decode(self._disk.read(OWNER_FILE), type=_Owner)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongFolderError(
                f"{OWNER_FILE} in the agent's folder can't be read ({error}); empty the folder: "
                "the agent fetches the image anew"
            ) from error
        if owner != ours:
            raise WrongFolderError(
                f"the agent's folder belongs to broker {owner.broker_id} of cluster "
                f"{owner.cluster_id}, and this is broker {ours.broker_id} of cluster "
                f"{ours.cluster_id}: name another folder, or empty this one"
            )


def _placed(loaded: LoadedCheckpoint) -> Generator[None, None, PlacedImage]:
    """Replay a checkpoint into an image, in steps.

    Raises ReplayError, RecordDecodeError, CheckpointError.
    """
    header = loaded.header
    newest = yield from image_of(loaded, keep_outcomes=False)
    assert newest.state_hash is not None
    if newest.state_hash.shared_bytes() != header.state_hash[:_HASH_BYTES]:
        raise CheckpointError(f"the records of {header.id} do not have its state hash")
    return PlacedImage(newest, header.mark)
