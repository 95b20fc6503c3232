"""The image that columns give is the image that replay of the same records gives."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metadata.image import MetadataImage, image_from_records, image_to_records
from metadata.image.topics_loading import TopicsLoading
from metadata.records import PartitionRecord, Record, TopicRecord
from metadata.steps import finished
from snapshots import contents as contents_module
from snapshots.errors import ColumnsError
from snapshots.loading import image_of as loaded_image
from snapshots.topic_block import TopicBlock, decode_topics
from tests.flips.checkpoints import images
from tests.properties.test_images import assert_sound
from tests.unit.snapshots.column_cases import (
    BLOCK_CASES,
    LEVEL,
    LONG,
    ORDERS,
    file_of,
    header_of,
    image_of,
    loaded,
    many,
    uuid,
)
from tests.unit.snapshots.test_columns import topics

FEW = settings(max_examples=40)


def assert_loads(image: MetadataImage) -> None:
    for version in (1, 2):
        found = finished(loaded_image(loaded(file_of(image, version))))
        assert found.state_hash == image.state_hash
        assert list(image_to_records(found)) == list(image_to_records(image))
        assert (found.offset, found.epoch, found.timestamp_ms) == (
            image.offset,
            image.epoch,
            image.timestamp_ms,
        )
        assert_sound(found)


@FEW
@given(st.integers(0, 2**32), st.integers(1, 80))
def test_an_image_of_any_history(seed: int, batches: int) -> None:
    (image,) = images(seed, batches)
    assert_loads(image)


@FEW
@given(topics())
def test_partitions_with_any_legal_fields(records: list[Record]) -> None:
    assert_loads(image_of(records))


@pytest.mark.parametrize("name", BLOCK_CASES)
def test_blocks_of_any_length(name: str) -> None:
    assert_loads(image_of(BLOCK_CASES[name][0]))


def test_a_broker_loads_no_outcomes() -> None:
    image = next(image for image in images(4, 60, 90) if len(image.outcomes.by_key))
    found = finished(loaded_image(loaded(file_of(image, 2)), keep_outcomes=False))
    assert not len(found.outcomes.by_key)
    assert found.state_hash is not None
    assert image.state_hash is not None
    assert found.state_hash.shared == image.state_hash.shared


def test_an_image_without_state_hash_costs_no_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TopicBlock, "sums", lambda _: pytest.fail("records are hashed"))
    image = image_of(many(1, 3))
    found = finished(loaded_image(loaded(file_of(image, 2)), with_state_hash=False))
    assert found.state_hash is None
    assert list(image_to_records(found)) == list(image_to_records(image))


def test_no_record_of_a_partition_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    image = image_of(many(2, 3_000))
    file = loaded(file_of(image, 2))
    monkeypatch.setattr(TopicBlock, "partition_records", lambda _: pytest.fail("records are made"))
    assert finished(loaded_image(file)).state_hash == image.state_hash


def test_a_pause_comes_after_some_hundred_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the columns of a block nor its hashes are worked through without a pause."""
    done: list[int] = []
    extend, steps = TopicsLoading.extend, 0

    def counted(self: TopicsLoading, numbers: list[int], partitions: list[object]) -> None:
        done.append(len(numbers))
        extend(self, numbers, partitions)  # type: ignore[arg-type]

    monkeypatch.setattr(TopicsLoading, "extend", counted)
    before = 0
    for _ in loaded_image(loaded(file_of(image_of(many(300, 33)), 2))):
        assert sum(done) - before < 600
        before, steps = sum(done), steps + 1
    assert sum(done) == 9_900
    assert steps > 40


def test_equal_lists_are_one_object_and_a_new_table_begins_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    def decode(content: bytes, count: int, intern: object) -> TopicBlock:
        sizes.append(len(intern.__self__))  # type: ignore[attr-defined]
        return decode_topics(content, count, intern)  # type: ignore[arg-type]

    monkeypatch.setattr(contents_module, "decode_topics", decode)
    monkeypatch.setattr(contents_module, "_INTERNED_MAX", 1)
    image = finished(loaded_image(loaded(file_of(image_of(many(1, 5_000)), 2))))
    assert sizes == [0, 0, 0] or max(sizes) <= 2
    same = {id(partition.replicas) for _, partition in image.topics.partitions_of(uuid(0))}
    assert len(same) <= len(LONG)


@pytest.mark.parametrize("name", ORDERS)
def test_hostile_blocks_give_no_image(name: str) -> None:
    blocks, why = ORDERS[name]
    file = loaded(file_of(image_of([LEVEL]), 2))
    hostile = type(file)(header_of(image_of([LEVEL]), 2), tuple(blocks), 0)
    with pytest.raises(ColumnsError, match=why):
        finished(loaded_image(hostile))


# -- partitions one by one and many at once --------------------------------------------------------


def one_by_one(records: list[Record]) -> Iterator[TopicsLoading]:
    """All of a topic at once, and each alone."""
    image = image_from_records(records, 1, 1, 1)
    for size in (1, 7, 1_000):
        loading = TopicsLoading(1)
        for topic_id in image.topics.ids:
            loading.begin(image.topics.by_id[topic_id])
            rows = list(image.topics.partitions_of(topic_id))
            for at in range(0, len(rows), size):
                some = rows[at : at + size]
                loading.extend([number for number, _ in some], [one for _, one in some])
        yield loading


LISTS = {
    "a broker twice": ((1, 1, 2), (1,), 1),
    "no replicas": ((), (), -1),
    "another leader": ((1, 2), (1, 2), 2),
    "nobody leads": ((1, 2), (), -1),
    "a smaller ISR": ((1, 2, 3), (1, 3), 1),
}


@pytest.mark.parametrize("name", LISTS)
def test_many_partitions_at_once_are_added_like_each_alone(name: str) -> None:
    replicas, isr, leader = LISTS[name]
    records: list[Record] = []
    for topic in range(2):
        records.append(TopicRecord(f"t{topic}", uuid(topic)))
        for number in (*range(20), *range(30, 40)):
            odd = number % 3 == topic
            adding = (7,) if number % 5 == 0 else ()
            record = PartitionRecord(
                number,
                uuid(topic),
                replicas if odd else (1, 2, 3),
                isr if odd else (1, 2, 3),
                (),
                adding,
                leader if odd else 1,
                0,
                0,
            )
            records.append(record)
    image = image_from_records(records, 1, 1, 1)
    assert_sound(image)
    for loading in one_by_one(records):
        found = finished(loading.finish())
        for field in found.__struct_fields__:
            ours, theirs = getattr(found, field), getattr(image.topics, field)
            assert list(ours) == list(theirs), field
            if hasattr(ours, "items"):
                assert list(map(repr, ours.values())) == list(map(repr, theirs.values())), field
