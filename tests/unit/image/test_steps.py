"""A large batch becomes an image in steps, so that an event loop can run in between."""

from collections.abc import Sequence

import pytest

from metadata.buckets import STEP
from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.image.metadata_image import hash_from_scratch
from metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.image.replaying import TOPIC_ID, partition, replayed, stepped, with_topic

MANY = 5 * STEP
LARGE = with_topic(*(partition(number) for number in range(MANY)))


def in_steps(image: MetadataImage, records: Sequence[Record]) -> tuple[MetadataImage, int]:
    """The image behind a batch, and how often its making yielded."""
    delta = MetadataDelta(image)
    delta.replay_all(records, image.offset)
    delta.finish_batch(image.offset + len(records), 0, 0)
    made, yields = stepped(delta.apply_in_steps())
    assert delta.apply() is made
    return made, yields


@pytest.mark.parametrize(
    "records",
    [
        [PartitionChangeRecord(number, TOPIC_ID, (2,), 2) for number in range(MANY)],
        [ConfigRecord(2, str(number), "a", "b") for number in range(MANY)],
        [TopicRecord(str(number), number.to_bytes(16, "big")) for number in range(MANY)],
        [
            AccessControlEntryRecord(number.to_bytes(16, "big"), 2, "a", 3, "User:a", "*", 3, 3)
            for number in range(MANY)
        ],
        [BeginTransactionRecord("t")]
        + [PartitionChangeRecord(number, TOPIC_ID, (2,), -1) for number in range(MANY)],
    ],
    ids=lambda records: type(records[-1]).__name__,
)
def test_a_large_batch_yields_often_and_gives_the_same_image(records: list[Record]) -> None:
    """Once for each step of writing its map, and of hashing it."""
    image, yields = in_steps(LARGE, records)
    assert yields >= 2 * (MANY // STEP)
    whole = replayed(*records, image=LARGE)
    assert image == whole
    assert image.state_hash == whole.state_hash


def test_a_small_batch_does_not_yield() -> None:
    """Its caller need not wait for another pass of the loop."""
    for image in (EMPTY, LARGE):
        assert in_steps(image, [ConfigRecord(2, "a", "b", "c")])[1] == 0
    assert in_steps(LARGE, [PartitionChangeRecord(1, TOPIC_ID, (2,), 2)])[1] == 0


def test_the_removal_of_a_large_topic_is_one_short_record_and_many_steps() -> None:
    """Its replay touches no partition; these go one step after the other."""
    delta = MetadataDelta(LARGE)
    delta.replay(RemoveTopicRecord(TOPIC_ID), LARGE.offset)
    assert not delta._visible.family("topics").partitions.changed
    with pytest.raises(ReplayError, match="no topic"):
        delta.replay(PartitionChangeRecord(1, TOPIC_ID, (2,), 2), LARGE.offset + 1)
    delta.finish_batch(LARGE.offset + 1, 0, 0)
    image, yields = stepped(delta.apply_in_steps())
    assert yields >= 4 * (MANY // STEP)
    assert not len(image.topics.partitions)
    assert not len(image.topics.replicas_by_broker)


def test_an_id_that_is_used_again_in_the_same_batch_has_only_the_new_partitions() -> None:
    """No controller writes this; replay allows it."""
    image = replayed(
        RemoveTopicRecord(TOPIC_ID),
        TopicRecord("again", TOPIC_ID),
        partition(0),
        RemoveTopicRecord(TOPIC_ID),
        TopicRecord("and-again", TOPIC_ID),
        partition(0),
        partition(1),
        image=LARGE,
    )
    assert list(image.topics.partitions) == [(TOPIC_ID, 0), (TOPIC_ID, 1)]
    assert image.state_hash == hash_from_scratch(image)
