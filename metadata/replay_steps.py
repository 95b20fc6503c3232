"""Replays batches into the next image in short steps.

Rule: controllers and broker agents replay by this code, so that equal batches give equal images.
The image from which the replay begins doesn't change, and the next image is returned only when it
is complete. A caller that stops in between has changed nothing.
"""

from collections.abc import Generator, Sequence
from typing import Protocol

from metadata.codec import decode_records
from metadata.image import MetadataDelta, MetadataImage
from metadata.records import BeginTransactionRecord

STEP = 64
"""Records that are replayed between two yields."""


class ReplayHeader(Protocol):
    """What replay needs of a batch's header."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""

    @property
    def epoch(self) -> int:
        """The epoch of the leader that wrote the batch."""

    @property
    def timestamp_ms(self) -> int:
        """The leader's time, in ms since 1970."""


class ReplayBatch(Protocol):
    """What replay needs of a batch of the ledger."""

    @property
    def header(self) -> ReplayHeader:
        """The batch's place in the log."""

    @property
    def records(self) -> bytes:
        """The encoded records."""


def replay_in_steps(
    image: MetadataImage, batches: Sequence[ReplayBatch], *, keep_outcomes: bool = True
) -> Generator[None, None, MetadataImage]:
    """Return the image after `batches`, which follow `image` in this order.

    Brokers pass `keep_outcomes=False` (see `MetadataDelta`). Raises RecordDecodeError, ReplayError.
    """
    delta = MetadataDelta(image, keep_outcomes=keep_outcomes)
    for batch in batches:
        yield
        header = batch.header
        records = decode_records(batch.records)
        if len(records) > STEP:
            yield
        if batch is not batches[0] and isinstance(records[0], BeginTransactionRecord):
            # Begin needs the image before it. Build that in steps, not in one go.
            image = yield from delta.apply_in_steps()
            delta = MetadataDelta(image, keep_outcomes=keep_outcomes)
        for start in range(0, len(records), STEP):
            delta.replay_all(records[start : start + STEP], header.base_offset + start)
            yield
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    applied = yield from delta.apply_in_steps()
    yield from delta.emptied()
    return applied
