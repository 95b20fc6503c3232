"""Checkpoints in format 2 as tables: where blocks end, and blocks that nobody writes.

Rule: the tests of our reader and those of the one-file verifier use the same tables, so that both
refuse the same.
"""

import struct
from collections.abc import Iterable
from hashlib import sha256

from metadata.codec import encode_record
from metadata.features import COLUMNS_FROM, LOGBERG_VERSION
from metadata.image import MetadataImage, image_from_records
from metadata.records import ConfigRecord, FeatureLevelRecord, PartitionRecord, Record, TopicRecord
from metadata.state_hash import StateHash
from snapshots.checkpoint import (
    COLUMNS_FORMAT,
    Block,
    CheckpointChecker,
    CheckpointHeader,
    Footer,
    encode_footer,
    encode_header,
)
from snapshots.columns import ColumnWriter
from snapshots.packing import image_frames
from snapshots.store import LoadedCheckpoint
from snapshots.topic_block import RECORDS_MAX, VOLUME_MAX

LEVEL = FeatureLevelRecord(LOGBERG_VERSION, COLUMNS_FROM)


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def image_of(records: Iterable[Record]) -> MetadataImage:
    return image_from_records(records, 1_000, 7, 5)


def header_of(image: MetadataImage, version: int) -> CheckpointHeader:
    state_hash = image.state_hash or StateHash()
    return CheckpointHeader(
        "a-cluster",
        image.offset,
        image.epoch,
        image.timestamp_ms,
        bytes(32),
        state_hash.encode(),
        format=version,
    )


def sealed(header: CheckpointHeader, blocks: Iterable[bytes], records: int) -> bytes:
    """A whole file with the right digest, whatever is in the blocks."""
    frames = [encode_header(header), *blocks]
    content = b"".join(frames)
    footer = Footer(len(frames) - 1, records, sha256(content).digest())
    return content + encode_footer(footer, header.format)


def file_of(image: MetadataImage, version: int) -> bytes:
    packed = [one for one in image_frames(image, version) if one is not None]
    frames = (frame for _, frame in packed)
    return sealed(header_of(image, version), frames, sum(count for count, _ in packed))


def loaded(content: bytes) -> LoadedCheckpoint:
    checker = CheckpointChecker()
    blocks = checker.feed(content)
    return LoadedCheckpoint(checker.finish(), tuple(blocks), len(content))


def contents(image: MetadataImage) -> list[Block]:
    return list(loaded(file_of(image, COLUMNS_FORMAT)).blocks)


def many(topics_count: int, size: int, **fields: object) -> list[Record]:
    records: list[Record] = [LEVEL]
    for topic in range(topics_count):
        records.append(TopicRecord(f"t{topic}", uuid(topic)))
        records += [
            PartitionRecord(number, uuid(topic), (1, 2), (1, 2), (), (), 1, 0, 0, **fields)  # type: ignore[arg-type]
            for number in range(size)
        ]
    return [*records, ConfigRecord(2, "t0", "retention.ms", "1")]


BLOCK_CASES: dict[str, tuple[list[Record], list[int]]] = {
    # name: (records, records of each block)
    "a topic that goes on": (many(1, 5_000), [1, 2048, 2048, 905, 1]),
    "a block that ends with its topic": (many(2, 2_047), [1, 2048, 2048, 1]),
    "a block that ends with a topic": (many(2, 2_046), [1, 2048, 2046, 1]),
    "a list that fills a block": (
        [
            LEVEL,
            TopicRecord("t", uuid(1)),
            PartitionRecord(0, uuid(1), tuple(range(VOLUME_MAX)), (), (), (), 1, 0, 0),
            PartitionRecord(1, uuid(1), (1,), (1,), (), (), 1, 0, 0),
        ],
        [1, 2, 1],
    ),
    "a name that fills a block": (
        [LEVEL, TopicRecord("é" * (VOLUME_MAX // 2), uuid(1)), TopicRecord("u", uuid(2))],
        [1, 1, 1],
    ),
    "no topics": ([LEVEL, ConfigRecord(4, "", "min.insync.replicas", "2")], [2]),
    "nothing": ([], []),
}


SMALL = image_of([LEVEL, *many(2, 3)[1:]])


def column(*values: int) -> bytes:
    writer = ColumnWriter()
    writer.ints(values)
    return b"".join(writer.parts)


LONG = contents(image_of(many(1, 5_000)))
TWO = contents(image_of(many(2, 2_047)))
ONE_RECORD = Block(False, 1, b"\x91" + encode_record(LEVEL))
A_TOPIC = Block(False, 1, b"\x91" + encode_record(TopicRecord("t", uuid(1))))
SHORT = contents(SMALL)[1]

ORDERS = {
    "a first block that continues": ([LONG[2]], "continues a topic"),
    "a block behind one that is not full": ([SHORT, TWO[2]], "not full"),
    "a topic that goes back": ([LONG[1], LONG[2], LONG[2]], "don't ascend"),
    "topics that go back": ([TWO[2], TWO[1]], "order of their ids"),
    "a topic twice": ([TWO[1], TWO[1]], "order of their ids"),
    "another topic that goes on": ([TWO[1], TWO[2], LONG[2]], "another topic"),
    "records between topics": ([TWO[1], ONE_RECORD, TWO[2]], "among those of topics"),
    "a topic as a record": ([A_TOPIC], "outside"),
}


NAME, TOPIC_ID = b"t", uuid(1)
ONE_TOPIC = struct.pack(">IB", 1, 0) + column(1) + NAME + TOPIC_ID
NO_LISTS = bytes(4)
ENDING = NO_LISTS * 5 + column(-1) + column(0) * 3


def content(
    *,
    before: bytes = ONE_TOPIC,
    counts: bytes = column(1),
    numbers: bytes = column(0),
    replicas: bytes = column(2) + column(1, 2),
    directories: bytes = column(0) + NO_LISTS,
    ending: bytes = ENDING,
) -> bytes:
    """A block of a topic and one partition, in parts."""
    return before + counts + numbers + replicas + directories + ending


KNOWN = column(1)
HOSTILE = {
    # name: (content, count of records, error)
    "as it should be": (content(), 2, None),
    "more topics than records": (content(before=b"\0\0\0\3" + ONE_TOPIC[4:]), 2, "at most 2"),
    "a flag of 2": (content(before=ONE_TOPIC[:4] + b"\2" + ONE_TOPIC[5:]), 2, "not 0 or 1"),
    "a name that is no text": (
        content(before=ONE_TOPIC.replace(b"t" + TOPIC_ID, b"\xff" + TOPIC_ID)),
        2,
        "not UTF-8",
    ),
    "a name past the end": (
        content(before=struct.pack(">IB", 1, 0) + column(1_000_000) + NAME + TOPIC_ID),
        2,
        "too early",
    ),
    "more partitions than records": (content(counts=column(2)), 2, "not as many"),
    "too few partitions": (content(counts=column(0)), 2, "not as many"),
    "a continued topic without partitions": (
        content(before=struct.pack(">IB", 1, 1) + uuid(0) + ONE_TOPIC[5:], counts=column(0, 1)),
        2,
        "not as many",
    ),
    "a number below zero": (content(numbers=column(-1)), 2, "numbers from 0"),
    "replicas without end": (content(replicas=column(2**31 - 1) + column(7)), 2, "fit here"),
    "directories of no replicas": (
        content(replicas=column(0), directories=KNOWN + NO_LISTS),
        2,
        "without replicas",
    ),
    "a table of more ids than replicas": (
        content(directories=KNOWN + struct.pack(">I", 3) + bytes(48) + column(0, 0)),
        2,
        "at most 2",
    ),
    "a table that does not ascend": (
        content(directories=KNOWN + struct.pack(">I", 2) + uuid(2) + uuid(1) + column(0, 1)),
        2,
        "don't ascend",
    ),
    "an id of the table that nobody has": (
        content(directories=KNOWN + struct.pack(">I", 2) + uuid(1) + uuid(2) + column(0, 0)),
        2,
        "no replica",
    ),
    "an index past the table": (
        content(directories=KNOWN + struct.pack(">I", 1) + uuid(1) + column(0, 1)),
        2,
        "numbers from 0 to 0",
    ),
    "an exception for the usual ISR": (
        content(ending=b"\0\0\0\1" + column(0) + column(2) + column(1, 2) + ENDING[4:]),
        2,
        "the usual isr",
    ),
    "an empty exception": (
        content(ending=NO_LISTS + b"\0\0\0\1" + column(0) + column(0) + ENDING[8:]),
        2,
        "numbers from 1",
    ),
    "an exception past the partitions": (
        content(ending=NO_LISTS + b"\0\0\0\1" + column(1) + column(1) + column(5) + ENDING[8:]),
        2,
        "numbers from 0 to 0",
    ),
    "more exceptions than partitions": (
        content(ending=NO_LISTS + b"\0\0\0\2" + ENDING[8:]),
        2,
        "at most 1",
    ),
    "a leader of -2": (content(ending=NO_LISTS * 5 + column(-2) + column(0) * 3), 2, "from -1"),
    "a recovery state of 2": (
        content(ending=NO_LISTS * 5 + column(-1) + column(0) * 2 + column(2)),
        2,
        "from 0 to 1",
    ),
    "bytes behind the columns": (content() + b"\0", 2, "behind the last"),
    "half of it": (content()[:-3], 2, "too early"),
    "no records": (content(), 0, "can't hold 0"),
    "more records than a block holds": (content(), RECORDS_MAX + 1, "can't hold"),
}
