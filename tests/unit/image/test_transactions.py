"""Transactions: many batches that are seen all at once or never (KIP-868)."""

import pytest

from metadata.image import MetadataDelta, MetadataImage, ReplayError, difference
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    Record,
    TopicRecord,
)
from tests.unit.image.replaying import (
    OTHER_ID,
    TOPIC_ID,
    partition,
    registration,
    replayed,
    with_topic,
)

BEGIN, END, ABORT = (
    BeginTransactionRecord("reassign"),
    EndTransactionRecord(),
    AbortTransactionRecord("no"),
)
LEADER_2 = PartitionChangeRecord(0, TOPIC_ID, leader=2)


def leader(image: MetadataImage) -> int:
    return image.topics.partitions[TOPIC_ID, 0].leader


def test_readers_see_the_state_before_until_the_end() -> None:
    """The branch is carried from delta to delta."""
    start = with_topic()
    opened = replayed(BEGIN, LEADER_2, image=start)
    assert leader(opened) == 1
    assert opened.state_hash == start.state_hash
    assert opened.offset == 4
    assert opened.transaction is not None
    assert (opened.transaction.name, opened.transaction.offset) == ("reassign", 2)
    assert leader(opened.transaction.branch) == 2
    more = replayed(PartitionChangeRecord(0, TOPIC_ID, isr=(2,)), image=opened)
    assert leader(more) == 1
    ended = replayed(END, image=more)
    assert ended.transaction is None
    assert leader(ended) == 2
    assert ended.topics.partitions[TOPIC_ID, 0].partition_epoch == 2
    plain = replayed(LEADER_2, PartitionChangeRecord(0, TOPIC_ID, isr=(2,)), image=start)
    assert ended.same_state(plain)
    assert ended.state_hash == plain.state_hash


@pytest.mark.parametrize("last", [ABORT, BeginEpochRecord(1, (), ())])
def test_abort_and_a_new_epoch_drop_the_branch(last: Record) -> None:
    """Nothing of it stays."""
    start = with_topic()
    opened = replayed(BEGIN, LEADER_2, TopicRecord("other", OTHER_ID), image=start)
    dropped = replayed(last, image=opened, epoch=1)
    assert dropped.transaction is None
    assert leader(dropped) == 1
    assert dropped.topics == start.topics
    free = replayed(TopicRecord("other", OTHER_ID), image=dropped, epoch=1)
    assert free.topics.by_name["other"] == OTHER_ID


def test_what_stands_around_a_transaction_in_one_batch() -> None:
    """Before Begin and behind Abort is no part of it."""
    image = replayed(
        LEADER_2, BEGIN, PartitionChangeRecord(0, TOPIC_ID, leader=3), ABORT,
        PartitionChangeRecord(0, TOPIC_ID, isr=(2,)),
        image=with_topic(),
    )  # fmt: skip
    state = image.topics.partitions[TOPIC_ID, 0]
    assert (state.leader, state.leader_epoch, state.partition_epoch, state.isr) == (2, 1, 2, (2,))


def test_publishers_learn_at_the_end_what_all_batches_changed() -> None:
    """Also what was changed in deltas long before."""
    start = with_topic()
    opened = replayed(BEGIN, TopicRecord("other", OTHER_ID), image=start)
    opening = MetadataDelta(opened)
    opening.replay(partition(0, OTHER_ID), 4)
    opening.finish_batch(5, 0, 0)
    assert not opening.changes
    ending = MetadataDelta(opening.apply())
    ending.replay(LEADER_2, 5)
    ending.replay(END, 6)
    ending.finish_batch(7, 0, 0)
    assert [(c.key, c.before, c.after) for c in ending.changes.topics] == [
        (OTHER_ID, None, TopicRecord("other", OTHER_ID))
    ]
    assert [change.key for change in ending.changes.partitions] == [(TOPIC_ID, 0), (OTHER_ID, 0)]
    assert list(difference(start, ending.apply())) == list(ending.changes)


def test_a_shutdown_flag_before_begin_gets_its_batch_s_end() -> None:
    """In the state that readers see, and in the branch."""
    flag = BrokerRegistrationChangeRecord(1, 10, in_controlled_shutdown=1)
    image = replayed(registration(), flag, BEGIN, NoOpRecord())
    assert image.cluster.brokers[1].controlled_shutdown_offset == 4
    ended = replayed(NoOpRecord(), END, image=image)
    assert ended.cluster.brokers[1].controlled_shutdown_offset == 4


def test_a_shutdown_flag_within_a_transaction_gets_its_batch_s_end() -> None:
    """The batch that holds the flag, not the one that holds End."""
    flag = BrokerRegistrationChangeRecord(1, 10, in_controlled_shutdown=1)
    image = replayed(registration(), BEGIN, flag)
    assert not image.cluster.brokers[1].in_controlled_shutdown
    assert (
        replayed(NoOpRecord(), END, image=image).cluster.brokers[1].controlled_shutdown_offset == 3
    )


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ((BEGIN, BEGIN), "another transaction is open since offset 2"),
        ((END,), "a transaction ends, but none is open"),
        ((ABORT,), "a transaction is aborted, but none is open"),
        ((BEGIN, END, END), "a transaction ends, but none is open"),
        ((BEGIN, ABORT, ABORT), "a transaction is aborted, but none is open"),
    ],
)
def test_markers_out_of_place_stop_replay(records: tuple[Record, ...], sentence: str) -> None:
    """Within one delta and over several."""
    with pytest.raises(ReplayError, match=sentence):
        replayed(*records, image=with_topic())
    with pytest.raises(ReplayError, match=sentence):
        one_by_one(*records)


def one_by_one(*records: Record) -> None:
    """A delta for each record."""
    image = with_topic()
    for record in records:
        image = replayed(record, image=image)
