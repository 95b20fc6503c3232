"""The image at start: from a checkpoint, and the ledger behind it.

Rule: an image is replaced, never patched up. What can't be read is not guessed: the next older
checkpoint is taken, then the whole ledger; if that does not reach back, the node says so.
"""

from collections.abc import Callable, Generator

from structlog.typing import FilteringBoundLogger

from ledger.ledger import Ledger
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage

_STEP = 256


class CannotLoadError(Exception):
    """Neither checkpoints nor the ledger give the image; the message says what to do."""


def replay_ledger(
    image: MetadataImage, ledger: Ledger, up_to: int
) -> Generator[None, None, MetadataImage]:
    """Bring an image to `up_to` (a batch end) by the ledger; yields often. Raises ReplayError."""
    if image.offset >= up_to:
        return image
    if image.offset < ledger.log_start:
        raise CannotLoadError(
            f"the ledger begins at offset {ledger.log_start} and no checkpoint reaches so far: "
            "fetch one from another controller into checkpoints/, or start with an empty folder"
        )
    delta, steps = MetadataDelta(image), 0
    for batch in ledger.batches(image.offset, up_to):
        header = batch.header
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        steps += header.count
        if steps >= _STEP:
            steps = 0
            yield
    return (yield from delta.apply_in_steps())


def load(
    have: MetadataImage,
    ledger: Ledger,
    checkpoint: Callable[[], Generator[None, None, MetadataImage | None]],
    log: FilteringBoundLogger,
) -> Generator[None, None, MetadataImage]:
    """The image at the ledger's mark, or beyond it if a checkpoint is.

    Begins from the image that we `have` if the ledger goes on from there, else from what
    `checkpoint` loads: the newest that can be read, None if there is none. Who led when a
    transaction was begun may not have built its branch: then it is replayed from its Begin.
    """
    built = have.transaction is None or have.transaction.built
    start = have if built else have.rewound()
    if start.offset == 0 or start.offset < ledger.log_start:
        start = (yield from checkpoint()) or EMPTY
    image = yield from replay_ledger(start, ledger, ledger.log_end)
    log.info("image_loaded", began_at=start.offset, offset=image.offset, epoch=image.epoch)
    return image
