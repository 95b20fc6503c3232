"""Loads the image of the newest checkpoint that can be read.

Rule: a checkpoint is used only if its file, its records and its state hash agree, and if our ledger
has its chain hash at its offset. A sound checkpoint of another history is as bad as a damaged one.
If the checkpoint is ahead of the ledger, `Applier` compares the two when the ledger gets there. A
damaged checkpoint is reported and put aside, and the one before it is taken.
"""

from collections.abc import Callable, Generator

from ledger.ledger import Ledger
from metadata.image import MetadataImage
from runtime.disk.interface import Disk
from snapshots.checkpoint import FOLDER, CheckpointHeader
from snapshots.errors import ColumnsError, DamagedCheckpointError
from snapshots.loading import image_of
from snapshots.store import CheckpointStore, LoadedCheckpoint, load_steps, without_progress


def load_checkpoint(
    disk: Disk,
    store: CheckpointStore,
    ledger: Ledger,
    cluster_id: str,
    on_damaged: Callable[[DamagedCheckpointError], None],
) -> Generator[None, None, tuple[MetadataImage, CheckpointHeader] | None]:
    """Return image and header of the newest readable checkpoint; None if there is none.

    Yields often. Raises DamagedLedgerError.
    """
    for checkpoint in reversed(store.list()):
        try:
            loaded = yield from without_progress(load_steps(disk, cluster_id, checkpoint))
            _must_be_of(ledger, loaded.header)
            return (yield from _image(loaded)), loaded.header
        except DamagedCheckpointError as error:
            on_damaged(error)
            store.put_aside(checkpoint)
    return None


def _must_be_of(ledger: Ledger, header: CheckpointHeader) -> None:
    if ledger.log_start <= header.offset <= ledger.log_end:
        ours = ledger.hash_at(header.offset)
        if ours != header.chain_hash:
            name = f"{FOLDER}/{header.id.name}"
            raise DamagedCheckpointError(name, 0, "it is of another history than the log here")


def _image(loaded: LoadedCheckpoint) -> Generator[None, None, MetadataImage]:
    header = loaded.header
    try:
        image = yield from image_of(loaded)
    except ColumnsError as error:
        raise DamagedCheckpointError(f"{FOLDER}/{header.id.name}", 0, str(error)) from error
    if image.state_hash is None or image.state_hash.encode() != header.state_hash:
        raise DamagedCheckpointError(
            f"{FOLDER}/{header.id.name}", 0, "its records don't have the state hash that it says"
        )
    return image
