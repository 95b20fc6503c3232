"""Topics and partitions: what each record about them does to the image."""

from typing import Any

import pytest

from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.unit.image.replaying import (
    OTHER_ID,
    TOPIC_ID,
    partition,
    replayed,
    with_topic,
)

KEY = (TOPIC_ID, 0)


def changed(image: MetadataImage | None = None, **fields: Any) -> MetadataImage:
    record = PartitionChangeRecord(0, TOPIC_ID, **fields)
    return replayed(record, image=image or with_topic())


def test_a_topic_binds_a_name_to_an_id() -> None:
    """Both ways are found at once."""
    image = with_topic(partition(0), partition(1))
    assert image.topics.by_id[TOPIC_ID].name == "orders"
    assert image.topics.by_name["orders"] == TOPIC_ID
    assert image.topics.named("orders") == TopicRecord("orders", TOPIC_ID)
    assert image.topics.named("missing") is None
    assert image.topics.ids_of(TOPIC_ID) == range(2)
    assert [number for number, _ in image.topics.partitions_of(TOPIC_ID)] == [0, 1]
    assert list(image.topics.ids_of(OTHER_ID)) == []


def test_a_partition_record_is_the_whole_state() -> None:
    """At creation and in snapshots; a missing ELR is an empty one."""
    dirs = tuple(bytes([n]) * 16 for n in (1, 2, 3))
    record = partition(
        isr=(2,), leader=2, leader_epoch=4, partition_epoch=9, leader_recovery_state=1,
        directories=dirs, removing_replicas=(3,), adding_replicas=(1,), last_known_elr=(1,),
    )  # fmt: skip
    state = with_topic(record).topics.partitions[KEY]
    assert (state.replicas, state.isr, state.leader) == ((1, 2, 3), (2,), 2)
    assert (state.leader_epoch, state.partition_epoch) == (4, 9)
    assert (state.removing, state.adding, state.directories) == ((3,), (1,), dirs)
    assert (state.elr, state.last_known_elr, state.leader_recovery_state) == ((), (1,), 1)


def test_every_change_raises_the_partition_epoch() -> None:
    """Also one that changes nothing else."""
    state = changed().topics.partitions[KEY]
    assert (state.partition_epoch, state.leader_epoch, state.leader) == (1, 0, 1)


@pytest.mark.parametrize("leader", [2, -1, 1])
def test_any_leader_but_minus_2_raises_the_leader_epoch(leader: int) -> None:
    """Also the same leader, and nobody."""
    state = changed(leader=leader).topics.partitions[KEY]
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (leader, 1, 1)


def test_none_is_untouched_and_empty_is_cleared() -> None:
    """For every list of a change."""
    dirs = tuple(bytes([n]) * 16 for n in (1, 2, 3))
    start = with_topic(
        partition(
            removing_replicas=(3,), adding_replicas=(2,), directories=dirs,
            eligible_leader_replicas=(2,), last_known_elr=(1,), leader_recovery_state=1,
        )
    )  # fmt: skip
    before = start.topics.partitions[KEY]
    untouched = changed(start).topics.partitions[KEY]
    for field in ("isr", "replicas", "removing", "adding", "directories", "elr", "last_known_elr"):
        assert getattr(untouched, field) == getattr(before, field)
    assert untouched.leader_recovery_state == 1
    cleared = changed(
        start, isr=(), removing_replicas=(), adding_replicas=(), directories=(),
        eligible_leader_replicas=(), last_known_elr=(), leader_recovery_state=0,
    ).topics.partitions[KEY]  # fmt: skip
    assert (cleared.isr, cleared.removing, cleared.adding, cleared.directories) == ((), (), (), ())
    assert (cleared.elr, cleared.last_known_elr, cleared.leader_recovery_state) == ((), (), 0)
    assert cleared.replicas == (1, 2, 3)


def test_each_list_gets_its_own_values() -> None:
    """No field lands in another's place."""
    dirs = tuple(bytes([n]) * 16 for n in (4, 2))
    state = changed(
        isr=(2,), replicas=(4, 2), removing_replicas=(5,), adding_replicas=(4,), directories=dirs,
        eligible_leader_replicas=(6,), last_known_elr=(7,), leader_recovery_state=1,
    ).topics.partitions[KEY]  # fmt: skip
    assert (state.replicas, state.isr, state.directories) == ((4, 2), (2,), dirs)
    assert (state.removing, state.adding) == ((5,), (4,))
    assert (state.elr, state.last_known_elr, state.leader_recovery_state) == ((6,), (7,), 1)


def test_replicas_are_found_by_broker() -> None:
    """A reassignment moves them."""
    image = with_topic(partition(0), partition(1, replicas=(3, 4), isr=(3,), leader=3))
    assert list(image.topics.held_by(3)) == [(TOPIC_ID, 0), (TOPIC_ID, 1)]
    assert list(image.topics.held_by(9)) == []
    moved = changed(image, replicas=(1, 9))
    assert list(moved.topics.held_by(3)) == [(TOPIC_ID, 1)]
    assert list(moved.topics.held_by(9)) == [(TOPIC_ID, 0)]
    assert 2 not in moved.topics.replicas_by_broker
    assert list(image.topics.held_by(2)) == [(TOPIC_ID, 0)]


def test_leaders_are_counted_and_the_leaderless_found() -> None:
    """What elections and controlled shutdown ask for."""
    image = with_topic(partition(0), partition(1))
    assert image.topics.leads(1) == 2
    headless = changed(image, leader=-1)
    assert headless.topics.leads(1) == 1
    assert list(headless.topics.leaderless) == [KEY]
    again = changed(headless, leader=2)
    assert (again.topics.leads(1), again.topics.leads(2)) == (1, 1)
    assert list(again.topics.leaderless) == []


def test_a_partition_may_be_written_again() -> None:
    """The second record replaces the first, and the indexes follow."""
    image = replayed(partition(replicas=(4,), isr=(4,), leader=-1), image=with_topic())
    assert list(image.topics.held_by(4)) == [KEY]
    assert list(image.topics.held_by(1)) == []
    assert list(image.topics.leaderless) == [KEY]
    assert image.topics.leads(1) == 0
    assert image.topics.ids_of(TOPIC_ID) == range(1)


def test_partitions_may_come_in_any_order() -> None:
    """They are listed in ascending order all the same."""
    image = with_topic(partition(5), partition(2), partition(0))
    assert list(image.topics.ids_of(TOPIC_ID)) == [0, 2, 5]
    full = replayed(partition(1), partition(4), partition(3), image=image)
    assert full.topics.ids_of(TOPIC_ID) == range(6)


def test_removing_a_topic_drops_partitions_and_configs() -> None:
    """Its name is free again, and only its own things went."""
    image = with_topic(partition(0), partition(1, leader=-1))
    image = replayed(
        TopicRecord("other", OTHER_ID),
        partition(0, OTHER_ID),
        ConfigRecord(2, "orders", "retention.ms", "1"),
        ConfigRecord(2, "other", "retention.ms", "2"),
        image=image,
    )
    image = replayed(RemoveTopicRecord(TOPIC_ID), image=image)
    topics = image.topics
    assert list(topics.by_id) == [OTHER_ID]
    assert list(topics.by_name) == ["other"]
    assert list(topics.partitions) == [(OTHER_ID, 0)]
    assert list(topics.leaderless) == []
    assert topics.leads(1) == 1
    assert list(topics.held_by(1)) == [(OTHER_ID, 0)]
    assert list(topics.partition_ids) == [OTHER_ID]
    assert image.configs.of(2, "orders") == {}
    assert image.configs.of(2, "other") == {"retention.ms": "2"}
    again = replayed(TopicRecord("orders", TOPIC_ID), partition(0), image=image)
    assert again.topics.ids_of(TOPIC_ID) == range(1)


def test_a_topic_can_go_in_the_batch_in_which_it_came() -> None:
    """Created and removed in one delta leaves nothing, and no change."""
    delta = MetadataDelta(EMPTY)
    records = (TopicRecord("orders", TOPIC_ID), partition(), RemoveTopicRecord(TOPIC_ID))
    delta.replay_all(records, 0)
    delta.finish_batch(3, 1, 1)
    assert delta.apply().same_state(EMPTY)
    assert not delta.changes


def elr(number: int, topic_id: bytes = TOPIC_ID) -> Record:
    return partition(number, topic_id, eligible_leader_replicas=(2,), last_known_elr=(3,))


def test_clear_elr_empties_one_topic_or_all() -> None:
    """Only partitions that have something to clear change (KIP-966)."""
    image = replayed(
        TopicRecord("orders", TOPIC_ID), elr(0), partition(1),
        TopicRecord("other", OTHER_ID), elr(0, OTHER_ID),
    )  # fmt: skip
    one = replayed(ClearElrRecord("orders"), image=image).topics.partitions
    assert (one[TOPIC_ID, 0].elr, one[TOPIC_ID, 0].last_known_elr) == ((), ())
    assert one[TOPIC_ID, 0].partition_epoch == 1
    assert one[TOPIC_ID, 0].leader_epoch == 0
    assert one[TOPIC_ID, 1].partition_epoch == 0
    assert one[OTHER_ID, 0].elr == (2,)
    all_topics = replayed(ClearElrRecord(""), image=image).topics.partitions
    assert all_topics[OTHER_ID, 0].elr == all_topics[TOPIC_ID, 0].elr == ()


def test_equal_replica_lists_are_one_object() -> None:
    """A million partitions share few lists."""
    image = with_topic(partition(0), partition(1))
    one, two = (image.topics.partitions[TOPIC_ID, number] for number in (0, 1))
    assert one.replicas is two.replicas is one.isr
    later = changed(image, isr=(*range(1, 4),))
    assert later.topics.partitions[KEY].isr is one.replicas


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (PartitionChangeRecord(7, TOPIC_ID), "topic 'orders' has no partition 7"),
        (PartitionChangeRecord(0, OTHER_ID), "there is no topic with id 1011"),
        (PartitionChangeRecord(0, TOPIC_ID, leader=-3), "the leader is -3, which is no broker id"),
        (PartitionChangeRecord(0, TOPIC_ID, leader_recovery_state=2), "no recovery state 2"),
        (PartitionChangeRecord(0, TOPIC_ID, leader_recovery_state=-2), "no recovery state"),
        (PartitionChangeRecord(0, TOPIC_ID, directories=(bytes(16),)), "3 replicas have 1 direct"),
        (partition(0, OTHER_ID), "there is no topic with id 1011"),
        (partition(-1), "can't have number -1"),
        (partition(1, leader=-2), "leader -2"),
        (partition(1, leader_recovery_state=-1), "recovery state -1"),
        (partition(1, directories=(bytes(16),)), "3 replicas have 1 directories"),
        (TopicRecord("orders", OTHER_ID), "there is a topic named 'orders' already"),
        (TopicRecord("another", TOPIC_ID), "another topic has the id"),
        (RemoveTopicRecord(OTHER_ID), "there is no topic with id 1011"),
        (ClearElrRecord("missing"), "there is no topic named 'missing'"),
    ],
)
def test_what_makes_no_sense_stops_replay(record: Record, sentence: str) -> None:
    """The error names the offset and says why."""
    with pytest.raises(ReplayError, match=sentence) as caught:
        MetadataDelta(with_topic()).replay(record, 5)
    assert caught.value.offset == 5


def test_a_removed_partition_is_unknown() -> None:
    """Also within the delta that removed it."""
    delta = MetadataDelta(with_topic())
    delta.replay(RemoveTopicRecord(TOPIC_ID), 2)
    with pytest.raises(ReplayError, match="there is no topic"):
        delta.replay(PartitionChangeRecord(0, TOPIC_ID), 3)


def test_names_that_metrics_spell_alike_are_found_as_long_as_one_of_them_is_there() -> None:
    """A log of old may hold several; they come in any order and go in any other."""
    names = ["a_b.c", "a.b.c", "plain", "a.b_c"]
    ids = [bytes([number]) * 16 for number in range(4)]
    image = replayed(*(TopicRecord(n, i) for n, i in zip(names, ids, strict=True)))
    assert image.topics.spelled_alike("a_b_c") == "a.b.c"
    assert image.topics.spelled_alike("plain") is None
    for number, left in ((1, "a.b_c"), (3, "a_b.c"), (0, None)):
        image = replayed(RemoveTopicRecord(ids[number]), image=image)
        assert image.topics.spelled_alike("a.b.c") == left
    assert not len(image.topics.by_spelling)
