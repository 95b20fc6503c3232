"""Makes the image of a checkpoint whose bytes are verified.

Rule: the image is what replay of the checkpoint's records gives. A checkpoint in format 1 is
replayed. In format 2 the topics are built from columns: no record is made, and the state hash is
the sum over the bytes that each record would have. The caller compares the state hash.
"""

from collections.abc import Generator, Iterator

import msgspec

from metadata.image import MetadataImage, load_image
from metadata.image.topics import TopicsImage
from metadata.image.topics_loading import TopicsLoading
from metadata.records import Record
from snapshots.contents import parts_of
from snapshots.store import LoadedCheckpoint
from snapshots.topic_block import TopicBlock

_ADDED = 512
"""Partitions that are added between two pauses: half a millisecond."""


def image_of(
    loaded: LoadedCheckpoint, *, with_state_hash: bool = True, keep_outcomes: bool = True
) -> Generator[None, None, MetadataImage]:
    """Return the image, with a pause every few milliseconds.

    A broker passes `keep_outcomes=False`. Raises RecordDecodeError and its kinds, ReplayError.
    """
    header = loaded.header
    parts = _Parts(loaded)
    image = MetadataImage()
    while parts.more:
        replayed = load_image(
            parts.records(),
            header.offset,
            header.epoch,
            header.timestamp_ms,
            with_state_hash=with_state_hash,
            keep_outcomes=keep_outcomes,
            begin=image,
        )
        for image in replayed:  # noqa: B007 - the last one is the whole
            yield
        if parts.more:
            topics, total = yield from _topics_of(parts, header.offset, hashed=with_state_hash)
            state_hash = None if image.state_hash is None else image.state_hash.plus(total, 0)
            image = msgspec.structs.replace(image, topics=topics, state_hash=state_hash)
    return image


class _Parts:
    """The records before the topics, the blocks of topics, and the records behind them."""

    def __init__(self, loaded: LoadedCheckpoint) -> None:
        self._rest = parts_of(loaded.blocks, loaded.header.format)
        self._next: list[Record] | TopicBlock | None = []
        self.more = True

    def records(self) -> Iterator[Record]:
        """Yield records up to the next block of topics."""
        while isinstance(self._next, list):
            yield from self._next
            self._take()

    def topics(self) -> Iterator[TopicBlock]:
        """Yield blocks of topics up to the next block of records."""
        while isinstance(self._next, TopicBlock):
            yield self._next
            self._take()

    def _take(self) -> None:
        self._next = next(self._rest, None)
        self.more = self._next is not None


def _topics_of(
    parts: _Parts, offset: int, *, hashed: bool
) -> Generator[None, None, tuple[TopicsImage, int]]:
    """Return the topics, and the sum of the hashes of their records."""
    loading, total = TopicsLoading(offset), 0
    for block in parts.topics():
        yield
        for some in block.sums() if hashed else ():
            total += some
            yield
        partitions = block.partitions()
        yield
        at = noted = 0
        for place, count in enumerate(block.counts):
            if block.continued is None or place:
                loading.begin(block.topics[place - (block.continued is not None)])
            for start in range(at, at + count, _ADDED):
                end = min(start + _ADDED, at + count)
                loading.extend(block.numbers[start:end], partitions[start:end])
                if end - noted >= _ADDED:
                    noted = end
                    yield
            at += count
    return (yield from loading.finish()), total
