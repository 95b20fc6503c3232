"""Topics that are loaded are those that replay of the same records gives."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.image import (
    EMPTY,
    MetadataDelta,
    MetadataImage,
    Partition,
    ReplayError,
    image_from_records,
    image_to_records,
)
from metadata.image.topics_loading import load_topics
from metadata.records import ConfigRecord, FeatureLevelRecord, PartitionRecord, Record, TopicRecord
from tests.unit.image.replaying import OTHER_ID, TOPIC_ID, partition, replayed, stepped

NAMES = ("a.b", "a_b", "c", "d.e.f", "d_e.f", "g")
brokers = st.lists(st.sampled_from((1, 2, 300, 70_000)), min_size=1, max_size=4).map(tuple)
few = st.lists(st.integers(1, 3), max_size=2).map(tuple)
numbers = st.sets(st.integers(0, 40), max_size=20) | st.integers(0, 40).map(
    lambda count: {*range(count)}
)


@st.composite
def snapshots(draw: st.DrawFn) -> list[Record]:
    """Topics with partitions of all kinds, between records of other families."""
    records: list[Record] = [FeatureLevelRecord("metadata.version", 20)]
    topics = draw(st.lists(st.sampled_from(NAMES), unique=True))
    for topic_id, name in enumerate(topics, 1):
        records.append(TopicRecord(name, bytes([topic_id]) * 16))
        for number in sorted(draw(numbers)):
            replicas = draw(brokers)
            record = partition(
                number,
                bytes([topic_id]) * 16,
                replicas=replicas,
                isr=draw(st.sampled_from([replicas, replicas[:1]])),
                leader=draw(st.sampled_from([-1, *replicas])),
                directories=draw(st.sampled_from([(), (bytes(16),) * len(replicas)])),
                adding_replicas=draw(few),
                removing_replicas=draw(few),
                eligible_leader_replicas=draw(st.none() | few),
                last_known_elr=draw(st.none() | few),
            )
            records.append(record)
    return [*records, ConfigRecord(2, "a", "b", "c")]


def in_one_delta(records: list[Record]) -> MetadataImage:
    delta = MetadataDelta(EMPTY)
    delta.replay_all(records, 9)
    delta.finish_batch(9, 1, 5)
    return delta.apply()


def assert_equal(loaded: MetadataImage, expected: MetadataImage) -> None:
    assert loaded == expected  # It compares the derived maps, too.
    assert loaded.state_hash == expected.state_hash
    assert list(image_to_records(loaded)) == list(image_to_records(expected))


@given(snapshots())
def test_a_load_gives_what_replay_gives(records: list[Record]) -> None:
    """Numbers may be missing, a broker may stand twice in a list, names may be spelled alike."""
    assert_equal(image_from_records(records, 9, 1, 5), in_one_delta(records))
    assert image_from_records(records, 9, 1, 5, with_state_hash=False).state_hash is None


@given(snapshots(), st.randoms(use_true_random=False))
def test_a_load_of_records_in_another_order_gives_the_same(
    records: list[Record], dice: st.DataObject
) -> None:
    """As in a snapshot of Kafka's own: its topics are not sorted by their ids."""
    topics = [record for record in records if isinstance(record, TopicRecord)]
    others = [record for record in records if not isinstance(record, TopicRecord)]
    dice.shuffle(topics)  # type: ignore[attr-defined]
    dice.shuffle(others)  # type: ignore[attr-defined]
    assert_equal(image_from_records([*topics, *others], 9, 1, 5), in_one_delta(records))


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([TopicRecord("a", OTHER_ID), TopicRecord("a", TOPIC_ID)], "there is a topic named 'a'"),
        ([TopicRecord("a", TOPIC_ID), TopicRecord("a", OTHER_ID)], "there is a topic named 'a'"),
        ([TopicRecord("a", TOPIC_ID), TopicRecord("b", TOPIC_ID)], "another topic has the id"),
        ([partition()], "there is no topic with id"),
        ([TopicRecord("a", TOPIC_ID), partition(0, OTHER_ID)], "there is no topic with id"),
        ([TopicRecord("a", TOPIC_ID), partition(-1)], "can't have number -1"),
        ([TopicRecord("a", TOPIC_ID), partition(leader=-2)], "can't have number 0, leader -2"),
        (
            [TopicRecord("a", TOPIC_ID), partition(directories=(bytes(16),))],
            "3 replicas have 1 directories",
        ),
    ],
)
def test_what_replay_refuses_a_load_refuses(records: list[Record], said: str) -> None:
    with pytest.raises(ReplayError, match=said):
        image_from_records(records, 9, 1, 5)
    with pytest.raises(ReplayError, match=said):
        in_one_delta(records)


def made_of(
    records: list[PartitionRecord], topics: list[TopicRecord]
) -> Iterator[tuple[TopicRecord, list[tuple[int, Partition]]]]:
    """As a reader of columns hands them over: without records."""
    image = replayed(*topics, *records)
    for topic in topics:
        yield topic, list(image.topics.partitions_of(topic.topic_id))


def test_topics_are_loaded_from_partitions_in_steps() -> None:
    topics = [TopicRecord("a", TOPIC_ID), TopicRecord("b", OTHER_ID)]
    records = [partition(number, topic.topic_id) for topic in topics for number in range(500)]
    image, yields = stepped(load_topics(made_of(records, topics), 9))
    assert image == replayed(*topics, *records).topics
    assert yields >= 1_000 // 64


def test_partitions_share_what_is_equal() -> None:
    """A million partitions have a few thousand lists of replicas."""
    records = [TopicRecord("a", TOPIC_ID)]
    loaded = image_from_records(
        [*records, *(partition(n, replicas=(700, 800, n % 2), isr=(700, 800, n % 2), leader=700)
                     for n in range(40))], 9, 1, 5
    )  # fmt: skip
    held = [each for _, each in loaded.topics.partitions_of(TOPIC_ID)]
    assert len({id(each.replicas) for each in held} | {id(each.isr) for each in held}) == 2
    assert all(each.leader is each.replicas[0] for each in held)


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        ([(TopicRecord("a", OTHER_ID), ()), (TopicRecord("b", TOPIC_ID), ())], "topic 0001"),
        ([(TopicRecord("a", TOPIC_ID), (1, 1))], "partition 1 is not in order"),
        ([(TopicRecord("a", TOPIC_ID), (1, 0))], "partition 0 is not in order"),
    ],
)
def test_what_is_not_in_order_is_refused(
    topics: list[tuple[TopicRecord, tuple[int, ...]]], said: str
) -> None:
    state = Partition((1,), (), (1,), (), (), (), (), 1, 0, 0, 0)
    rows = [(topic, [(number, state) for number in numbers]) for topic, numbers in topics]
    with pytest.raises(ReplayError, match=said):
        stepped(load_topics(rows, 9))
