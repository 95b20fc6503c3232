"""The agent's image on disk, so that a restart fetches only what it missed.

Rule: an image that is loaded is held against the state hash that its file names; what doesn't
match is not used, and the agent fetches everything anew. The image on disk is a convenience,
never evidence: losing it costs a fetch.
"""

from collections.abc import Callable
from itertools import chain

import msgspec
import structlog

from broker_agent.config import AgentConfig
from broker_agent.view import MetadataView
from ledger.chain import LogMark
from metadata.codec import RecordDecodeError, decode_records, encode_record
from metadata.image import MetadataImage, ReplayError, image_from_records, image_to_records
from runtime.clock import Clock
from runtime.disk import Disk
from snapshots.checkpoint import CheckpointHeader, CheckpointId
from snapshots.store import CheckpointStore, LoadedCheckpoint

_KEPT = 2
_HASH_BYTES = 32


class BadImageError(Exception):
    """An image on disk, or one that was fetched, is not what it says it is."""


class SavedImage(msgspec.Struct, frozen=True):
    """An image and its place in the log."""

    image: MetadataImage
    mark: LogMark


class ImageStore:
    """Saves the image now and then, and at an orderly end."""

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        disk: Disk,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._disk = disk
        self._log = log
        self._store: CheckpointStore | None = None
        self._saved_offset = 0
        self._saved_at = clock.monotonic()

    def open(self) -> SavedImage | None:
        """Take the folder, and load the newest good image. Raises OSError, FolderInUseError."""
        self._disk.lock()
        self._store = CheckpointStore(self._disk, self._config.cluster_id, self._clock, self._log)
        loaded = self._store.load_newest()
        if loaded is None:
            return None
        try:
            saved = _image_of(loaded)
        except BadImageError as error:
            self._log.warning("saved_image_unusable", why=str(error))
            return None
        self._saved_offset = saved.mark.log_end
        return saved

    def adopt(self, checkpoint: CheckpointId) -> SavedImage:
        """Load a checkpoint that was fetched into its place.

        Raises BadImageError, CheckpointError, OSError.
        """
        assert self._store is not None
        saved = _image_of(self._store.load(checkpoint))
        self._saved_offset = saved.mark.log_end
        self._saved_at = self._clock.monotonic()
        return saved

    def save_if_due(self, view: MetadataView) -> None:
        """Save in the background when enough records, or enough time, have gone by."""
        records = view.fetched_offset - self._saved_offset
        age_ms = (self._clock.monotonic() - self._saved_at) * 1000
        late = records > 0 and age_ms >= self._config.image_ms_between_saves
        if late or records >= self._config.image_records_between_saves:
            self.save(view, lambda: None)

    def save(self, view: MetadataView, on_done: Callable[[], None]) -> None:
        """Save, then call back; at once when there is nothing that can or need be saved."""
        store, image, mark = self._store, view.image, view.mark
        busy = store is None or store.writing or image.transaction is not None
        if store is None or busy or mark.log_end <= self._saved_offset:
            on_done()
            return
        assert image.state_hash is not None
        header = CheckpointHeader(
            cluster_id=self._config.cluster_id,
            offset=mark.log_end,
            epoch=mark.epoch,
            timestamp_ms=mark.timestamp_ms,
            chain_hash=mark.head,
            state_hash=image.state_hash.shared_bytes() + bytes(_HASH_BYTES),
        )

        def written(checkpoint: CheckpointId | None, error: OSError | None) -> None:
            if error is None:
                store.thin_out(_KEPT, 2**62)
            on_done()

        self._saved_offset = mark.log_end
        self._saved_at = self._clock.monotonic()
        records = map(encode_record, image_to_records(image, for_brokers=True))
        store.write(header, records, written)

    def close(self) -> None:
        """Give the folder up; a save that is under way is given up too."""
        if self._store is not None:
            self._store.cancel()
            self._store = None


def _image_of(loaded: LoadedCheckpoint) -> SavedImage:
    header = loaded.header
    try:
        records = chain.from_iterable(map(decode_records, loaded.blocks))
        image = image_from_records(
            records, header.offset, header.epoch, header.timestamp_ms, keep_outcomes=False
        )
    except (RecordDecodeError, ReplayError) as error:
        raise BadImageError(f"checkpoint {header.id}: {error}") from error
    assert image.state_hash is not None
    if image.state_hash.shared_bytes() != header.state_hash[:_HASH_BYTES]:
        raise BadImageError(f"checkpoint {header.id}: its records do not sum up to its state hash")
    return SavedImage(image, header.mark)
