"""A large batch becomes an image in steps, so that a loop can go on between."""

from collections.abc import Sequence

import pytest

from metadata.buckets import STEP
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    Record,
    TopicRecord,
)
from tests.unit.image.replaying import TOPIC_ID, partition, replayed, stepped, with_topic

MANY = 4 * STEP
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
