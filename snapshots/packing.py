"""Packs the records of an image into the blocks of a checkpoint, in format 1 or 2.

Rule: the same image gives the same blocks. In format 1 every block is an array of records. In
format 2 topics and partitions are columns, and blocks of the other records stand before and behind
them. The format follows from the image's own feature levels, so all nodes choose the same one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from metadata.codec import encode_record
from metadata.features import COLUMNS_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage, image_to_records
from metadata.image.families import TABLES
from metadata.image.snapshot import table_records
from metadata.image.table import ImageTable
from snapshots.checkpoint import COLUMNS_FORMAT, Block, BlockPacker, encode_block
from snapshots.topic_block import TopicPacker

Packed = tuple[int, bytes]
"""A count of records, and the frame of the block that has them."""

FORMAT_1 = 1
_STEP = 64
"""Records that are encoded and packed between two pauses."""
_STEP_OF_PARTITIONS = 256

_TOPICS = next(place for place, table in enumerate(TABLES) if table.name == "topics")
assert TABLES[_TOPICS + 1].name == "partitions"


def format_of(image: MetadataImage) -> int:
    """Return the format in which a checkpoint of this image is written."""
    level = image.features.levels.get(LOGBERG_VERSION, 0)
    return COLUMNS_FORMAT if level >= COLUMNS_FROM else FORMAT_1


def image_frames(
    image: MetadataImage, version: int, for_brokers: bool = False
) -> Iterator[Packed | None]:
    """Yield the blocks of an image in this format, and None where the caller may pause.

    Raises ValueError at the call if a transaction is open.
    """
    records = image_to_records(image, for_brokers=for_brokers)
    if version == FORMAT_1:
        return record_frames(map(encode_record, records))
    return _columns(image, for_brokers)


def record_frames(records: Iterable[bytes]) -> Iterator[Packed | None]:
    """Yield encoded records as blocks of format 1, and None where the caller may pause."""
    packer = BlockPacker()
    yield from _add(packer, records)
    yield packer.rest()


def _add(packer: BlockPacker, records: Iterable[bytes]) -> Iterator[Packed | None]:
    for number, record in enumerate(records, 1):
        packed = packer.add(record)
        if packed is not None or number % _STEP == 0:
            yield packed


def _columns(image: MetadataImage, for_brokers: bool) -> Iterator[Packed | None]:
    before = [table for table in TABLES[:_TOPICS] if not table.controllers_only]
    behind = [table for table in TABLES[_TOPICS + 2 :] if not table.controllers_only]
    if not for_brokers:
        behind += [table for table in TABLES if table.controllers_only]
    packer = BlockPacker(COLUMNS_FORMAT)
    yield from _add(packer, _records(image, before))
    if image.topics.ids:
        yield packer.rest()
        yield from _topics(image)
    yield from _add(packer, _records(image, behind))
    yield packer.rest()


def _records(image: MetadataImage, tables: Iterable[ImageTable]) -> Iterator[bytes]:
    records = chain.from_iterable(table_records(image, table) for table in tables)
    return map(encode_record, records)


def _topics(image: MetadataImage) -> Iterator[Packed | None]:
    packer = TopicPacker()
    number = 0
    for topic_id in image.topics.ids:
        if (full := packer.add_topic(image.topics.by_id[topic_id])) is not None:
            yield _framed(full)
        for partition_id, partition in image.topics.partitions_of(topic_id):
            if (full := packer.add_partition(partition_id, partition)) is not None:
                yield _framed(full)
            number += 1
            if number % _STEP_OF_PARTITIONS == 0:
                yield None
    if (rest := packer.rest()) is not None:
        yield _framed(rest)


def _framed(packed: tuple[int, bytes]) -> Packed:
    count, content = packed
    return count, encode_block(Block(True, count, content), COLUMNS_FORMAT)
