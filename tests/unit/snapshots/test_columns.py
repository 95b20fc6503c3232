"""Checkpoints in format 2: columns of topics and partitions (docs/format.md, section 8)."""

import random
import struct
from functools import partial
from itertools import islice

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import DamagedBatchError
from metadata.codec import encode_record
from metadata.features import COLUMNS_FROM, LOGBERG_VERSION, SUPPORTED
from metadata.image import (
    EMPTY,
    MetadataDelta,
    MetadataImage,
    Partition,
    image_from_records,
    image_to_records,
)
from metadata.records import FeatureLevelRecord, PartitionRecord, Record, TopicRecord
from snapshots.checkpoint import (
    COLUMNS_FORMAT,
    Block,
    CheckpointChecker,
    Footer,
    encode_block,
    encode_blocks,
    encode_footer,
    encode_header,
)
from snapshots.columns import ColumnReader, ColumnWriter
from snapshots.contents import parts_of, records_of
from snapshots.errors import CheckpointError, ColumnsError
from snapshots.packing import format_of
from snapshots.store import CheckpointStore
from snapshots.topic_block import VOLUME_MAX, TopicBlock, TopicPacker, decode_topics
from tests.flips.checkpoints import images
from tests.unit.ledger.ledger_world import Node
from tests.unit.snapshots.column_cases import (
    BLOCK_CASES,
    HOSTILE,
    LEVEL,
    NO_LISTS,
    ORDERS,
    SHORT,
    SMALL,
    TOPIC_ID,
    column,
    content,
    contents,
    file_of,
    header_of,
    image_of,
    loaded,
    sealed,
    uuid,
)

FEW = settings(max_examples=40)


# -- the same records, whatever the format ---------------------------------------------------------


def assert_both_formats_hold_the_image(image: MetadataImage) -> None:
    file = loaded(file_of(image, COLUMNS_FORMAT))
    again = image_from_records(file.records(), image.offset, image.epoch, image.timestamp_ms)
    assert again.state_hash == image.state_hash
    assert list(image_to_records(again)) == list(image_to_records(image))
    assert file_of(again, COLUMNS_FORMAT) == file_of(image, COLUMNS_FORMAT)
    transcoded = list(encode_blocks(map(encode_record, file.records())))
    count = sum(number for number, _ in transcoded)
    in_format_1 = sealed(header_of(image, 1), (frame for _, frame in transcoded), count)
    assert in_format_1 == file_of(image, 1)
    assert list(loaded(in_format_1).records()) == list(file.records())
    arrays = [msgspec.msgpack.decode(array) for array in file.arrays()]
    assert [len(array) for array in arrays] == [block.records for block in file.blocks]


@FEW
@given(st.integers(0, 2**32), st.integers(1, 80))
def test_an_image_of_any_history_is_the_same_in_both_formats(seed: int, batches: int) -> None:
    (image,) = images(seed, batches)
    assert_both_formats_hold_the_image(image)


ids32 = st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5) | st.sampled_from((255, 256, 65_536))
id_lists = st.lists(ids32, max_size=5).map(tuple)


@st.composite
def partitions(draw: st.DrawFn, topic_id: bytes, number: int) -> PartitionRecord:
    replicas = draw(id_lists)
    known = draw(st.booleans()) and replicas
    directories = tuple(uuid(draw(st.integers(0, 300))) for _ in replicas) if known else ()
    return PartitionRecord(
        number,
        topic_id,
        replicas,
        replicas if draw(st.booleans()) else draw(id_lists),
        draw(id_lists | st.just(())),
        draw(id_lists | st.just(())),
        draw(st.integers(-1, 2**31 - 1) | st.integers(-1, 3)),
        draw(ids32),
        draw(ids32),
        draw(st.integers(0, 1)),
        directories,
        draw(id_lists) or None,
        draw(id_lists) or None,
    )


@st.composite
def topics(draw: st.DrawFn) -> list[Record]:
    records: list[Record] = [LEVEL]
    for number in sorted(draw(st.sets(st.integers(0, 300), max_size=6))):
        records.append(TopicRecord(draw(st.text(max_size=20)) + f"{number}", uuid(number)))
        some = st.sets(st.integers(0, 12) | st.integers(0, 2**31 - 1), max_size=8)
        records += [draw(partitions(uuid(number), one)) for one in sorted(draw(some))]
    return records


@FEW
@given(topics())
def test_partitions_with_any_legal_fields_are_the_same_in_both_formats(
    records: list[Record],
) -> None:
    assert_both_formats_hold_the_image(image_of(records))


@pytest.mark.parametrize("name", BLOCK_CASES)
def test_where_a_block_of_topics_ends(name: str) -> None:
    records, counts = BLOCK_CASES[name]
    image = image_of(records)
    assert [block.records for block in contents(image)] == counts
    assert_both_formats_hold_the_image(image)


def test_a_partition_of_three_replicas_takes_at_most_60_bytes() -> None:
    """100 brokers with a directory each; the replicas of a partition are drawn."""
    dice = random.Random(1)
    brokers, directories = range(100), [uuid(2**100 + broker) for broker in range(100)]
    records: list[Record] = [LEVEL]
    for topic in range(20):
        records.append(TopicRecord(f"topic-{topic}", uuid(topic)))
        for number in range(500):
            replicas = tuple(dice.sample(brokers, 3))
            isr = replicas if dice.random() < 0.9 else replicas[:2]
            epochs = dice.randrange(100_000), dice.randrange(1_000_000)
            places = tuple(directories[broker] for broker in replicas)
            record = PartitionRecord(
                number, uuid(topic), replicas, isr, (), (), isr[0], *epochs, 0, places
            )
            records.append(record)
    image = image_of(records)
    assert len(file_of(image, COLUMNS_FORMAT)) / 10_000 < 60 / 3
    assert len(file_of(image, 1)) / 10_000 > 90


def test_records_alone_are_written_in_format_1_only() -> None:
    node = Node()
    store = CheckpointStore(node.disk, node.cluster_id, node.process.clock, node.log)
    header = msgspec.structs.replace(header_of(SMALL, 2), cluster_id=node.cluster_id)
    with pytest.raises(CheckpointError, match="not 2"):
        store.write(header, [], lambda *_: None)


def test_the_level_chooses_the_format() -> None:
    for level in range(SUPPORTED[LOGBERG_VERSION].low, SUPPORTED[LOGBERG_VERSION].high + 1):
        delta = MetadataDelta(EMPTY)
        delta.replay_all([FeatureLevelRecord(LOGBERG_VERSION, level)], 0)
        delta.finish_batch(1, 1, 0)
        assert format_of(delta.apply()) == (2 if level >= COLUMNS_FROM else 1)
    assert format_of(EMPTY) == 1


# -- the frames of a file --------------------------------------------------------------------------


def test_a_block_of_topics_in_format_1_is_refused() -> None:
    block = contents(SMALL)[1]
    content = encode_header(header_of(SMALL, 1)) + encode_block(block, 1)
    with pytest.raises(DamagedBatchError, match="no QRTK frame begins here"):
        CheckpointChecker().feed(content)


def test_frames_of_two_formats_in_one_file_are_refused() -> None:
    block = contents(SMALL)[0]
    for version, other in ((1, 2), (2, 1)):
        header = encode_header(header_of(SMALL, version))
        for frame in (encode_block(block, other), encode_footer(Footer(0, 0, bytes(32)), other)):
            with pytest.raises(DamagedBatchError, match="another format than the header"):
                CheckpointChecker().feed(header + frame)


@given(st.integers(1, 700))
def test_the_size_of_the_pieces_does_not_matter(size: int) -> None:
    content = file_of(SMALL, COLUMNS_FORMAT)
    checker = CheckpointChecker()
    blocks: list[Block] = []
    for at in range(0, len(content), size):
        blocks += checker.feed(content[at : at + size])
    assert checker.finish().format == COLUMNS_FORMAT
    assert list(records_of(blocks, 2)) == list(image_to_records(SMALL))


# -- other encodings, and hostile ones -------------------------------------------------------------


@pytest.mark.parametrize("name", ORDERS)
def test_blocks_in_another_order_are_refused(name: str) -> None:
    blocks, why = ORDERS[name]
    with pytest.raises(ColumnsError, match=why):
        list(parts_of(blocks, COLUMNS_FORMAT))


INTS = {
    # name: (bytes, how many values, error)
    "as it should be": (column(5, 9), 2, None),
    "too wide": (struct.pack(">iBHH", 5, 2, 0, 4), 2, "shortest form"),
    "wide for equal values": (struct.pack(">iBBB", 5, 1, 0, 0), 2, "shortest form"),
    "a base below the smallest": (struct.pack(">iBBB", 4, 1, 1, 5), 2, "shortest form"),
    "a width of three": (struct.pack(">iB6x", 4, 3), 2, "3 bytes wide"),
    "a sum past 32 bits": (struct.pack(">iBBB", 2**31 - 1, 1, 0, 1), 2, "numbers from"),
    "half a column": (column(5, 9)[:-1], 2, "too early"),
    "a column that is not there": (b"", 2, "too early"),
    "bytes behind it": (column(5, 9) + b"\0", 2, "behind the last"),
    "a column of nothing": (b"\0\0\0\0\0", 0, "behind the last"),
}


@pytest.mark.parametrize("name", INTS)
def test_a_column_of_integers_has_one_form(name: str) -> None:
    data, count, why = INTS[name]
    reader = ColumnReader(data, 0)

    def read() -> list[int]:
        values = reader.ints(count)
        reader.finish()
        return values

    if why is None:
        assert read() == [5, 9]
        return
    with pytest.raises(ColumnsError, match=why):
        read()


@given(st.lists(ids32))
def test_integers_come_back(values: list[int]) -> None:
    writer = ColumnWriter()
    writer.ints(values)
    reader = ColumnReader(b"".join(writer.parts), 0)
    assert reader.ints(len(values)) == values
    reader.finish()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_block_that_nobody_writes_is_refused(name: str) -> None:
    data, count, why = HOSTILE[name]
    decode = partial(decode_topics, data, count, {}.setdefault)
    if why is None:
        assert list(decode().records()) == [
            TopicRecord("t", TOPIC_ID),
            PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), (), (), -1, 0, 0),
        ]
        return
    with pytest.raises(ColumnsError, match=why):
        decode()


def test_a_block_that_goes_on_after_it_is_full_is_refused() -> None:
    long = tuple(range(VOLUME_MAX))
    writer = ColumnWriter()
    writer.lists([long, (1,)])
    ending = NO_LISTS * 5 + column(-1, -1) + column(0, 0) * 3
    data = content(
        counts=column(2),
        numbers=column(0) + column(0),
        replicas=b"".join(writer.parts),
        directories=column(0, 0) + NO_LISTS,
        ending=NO_LISTS * 5 + ending[20:],
    )
    with pytest.raises(ColumnsError, match="goes on after it is full"):
        decode_topics(data, 3, {}.setdefault)


@settings(max_examples=300)
@given(st.data())
def test_a_changed_block_is_refused_or_is_the_only_encoding_of_what_it_says(
    data: st.DataObject,
) -> None:
    """Whatever is accepted, a writer writes the same bytes for it."""
    block = data.draw(st.sampled_from([SHORT, *contents(images(7, 60)[0])]))
    if not block.of_topics:
        return
    changed = bytearray(block.content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    try:
        found = decode_topics(bytes(changed), block.records, {}.setdefault)
    except ColumnsError:
        return
    assert packed_again(found) == bytes(changed)


def packed_again(block: TopicBlock) -> bytes:
    packer, topic_ids = TopicPacker(), iter(block.topics)
    packer._topic_id = block.continued or b""
    records = iter(block.partition_records())
    found: list[tuple[int, bytes] | None] = []
    for place, count in enumerate(block.counts):
        if place or block.continued is None:
            found.append(packer.add_topic(next(topic_ids)))
        here = islice(records, count)
        found += [packer.add_partition(one.partition_id, partition_of(one)) for one in here]
    found.append(packer.rest())
    [(count, content)] = filter(None, found)
    assert count == block.records_count
    return content


def partition_of(record: PartitionRecord) -> Partition:
    return Partition(
        record.replicas,
        record.directories,
        record.isr,
        record.eligible_leader_replicas or (),
        record.last_known_elr or (),
        record.removing_replicas,
        record.adding_replicas,
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
    )
