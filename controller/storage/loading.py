"""Builds the image at a start: from a checkpoint, and the ledger after it.

Rule: an image is replaced, never repaired. If a checkpoint can't be read, the next older one is
taken, and at last the whole ledger. If the ledger does not reach back to offset 0, CannotLoadError
says so.
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
    """Return the image at `up_to`, a batch's end, by replaying the ledger. Yields often.

    Raises ReplayError, CannotLoadError.
    """
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
    """Return the image at the ledger's mark, or later if the newest checkpoint is.

    Begins from the image that we `have` if the ledger continues it. Otherwise begins from what
    `checkpoint` loads: the newest checkpoint that can be read, None if there is none.
    """
    # A leader does not build the branch of a transaction that it has begun. Such a transaction is
    # replayed from its Begin record.
    built = have.transaction is None or have.transaction.built
    start = have if built else have.rewound()
    if start.offset == 0 or start.offset < ledger.log_start:
        start = (yield from checkpoint()) or EMPTY
    image = yield from replay_ledger(start, ledger, ledger.log_end)
    log.info("image_loaded", began_at=start.offset, offset=image.offset, epoch=image.epoch)
    return image
