"""Duties: lead, follow or drop, each once, with its leader epoch."""

import pytest

from broker_agent.publishers import PartitionDuties
from broker_agent.view import MetadataView, PlacedImage
from metadata.image import image_from_records, image_to_records
from metadata.partition_key import PartitionKey
from metadata.records import NoOpRecord, PartitionChangeRecord, RemoveTopicRecord
from metadata.steps import finished
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import (
    BROKER,
    CLUSTER_ID,
    Log,
    partition,
    topic,
    topic_id,
)
from tests.unit.broker_agent.rig import Rig


class Host:
    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.fails_at: set[PartitionKey] = set()

    def lead(self, partition, topic, leader_epoch) -> None:
        self._note("lead", partition, topic, leader_epoch)

    def follow(self, partition, topic, leader, leader_epoch) -> None:
        self._note("follow", partition, topic, leader, leader_epoch)

    def drop(self, partition) -> None:
        self._note("drop", partition)

    def _note(self, what, key, *more) -> None:
        self.calls.append((what, key.topic_id[-1], key.partition, *more))
        if key in self.fails_at:
            raise RuntimeError("a mistake of the host")

    def take(self) -> list[tuple]:
        calls, self.calls = self.calls, []
        return calls


class Duty:
    def __init__(self) -> None:
        self.host = Host()
        self.log = Log()
        self.view = MetadataView(CLUSTER_ID, (PartitionDuties(BROKER, self.host),), quiet_log())
        finished(self.view.release_in_steps())

    def commit(self, *records) -> list[tuple]:
        finished(self.view.apply_in_steps([self.log.append(*records).encoded]))
        return self.host.take()

    def replace(self) -> list[tuple]:
        log = self.log
        image = image_from_records(
            image_to_records(log.image), log.end, log.mark.epoch, log.mark.timestamp_ms
        )
        finished(self.view.replace_in_steps(PlacedImage(image, log.mark)))
        return self.host.take()


@pytest.fixture
def duty() -> Duty:
    return Duty()


def change(number: int, **fields) -> PartitionChangeRecord:
    return PartitionChangeRecord(number, topic_id(1), **fields)


def test_a_new_topic_s_partitions_are_led_followed_or_none_of_ours(duty):
    told = duty.commit(
        topic(1),
        partition(1, 0, (7, 8), 7),
        partition(1, 1, (8, 7), 8, leader_epoch=3),
        partition(1, 2, (8, 9), 8),
    )
    assert told == [("lead", 1, 0, "topic-1", 0), ("follow", 1, 1, "topic-1", 8, 3)]
    assert duty.commit(NoOpRecord()) == []


def test_a_change_of_leader_is_told_with_its_epoch_and_other_changes_are_not(duty):
    duty.commit(topic(1), partition(1, 0, (7, 8), 7))
    assert duty.commit(change(0, isr=(7,))) == []
    assert duty.commit(change(0, leader=8)) == [("follow", 1, 0, "topic-1", 8, 1)]
    assert duty.commit(change(0, leader=8)) == [("follow", 1, 0, "topic-1", 8, 2)]
    assert duty.commit(change(0, leader=-1)) == [("follow", 1, 0, "topic-1", -1, 3)]
    assert duty.commit(change(0, leader=7)) == [("lead", 1, 0, "topic-1", 4)]


def test_a_replica_that_goes_is_dropped_and_one_that_comes_is_told(duty):
    duty.commit(topic(1), partition(1, 0, (7, 8), 8))
    assert duty.commit(change(0, replicas=(8, 9))) == [("drop", 1, 0)]
    assert duty.commit(change(0, replicas=(8, 9, 7))) == [("follow", 1, 0, "topic-1", 8, 0)]


def test_a_topic_that_is_deleted_is_dropped(duty):
    duty.commit(topic(1), partition(1, 0, (7, 8), 7), partition(1, 1, (8, 9), 8))
    assert duty.commit(RemoveTopicRecord(topic_id(1))) == [("drop", 1, 0)]


def test_an_image_that_replaces_drops_what_is_in_it_no_more(duty):
    duty.commit(topic(1), partition(1, 0, (7,), 7), topic(2), partition(2, 0, (7,), 7))
    duty.log.append(RemoveTopicRecord(topic_id(1)))
    duty.log.append(topic(3), partition(3, 0, (7, 8), 7))
    assert duty.replace() == [("drop", 1, 0), ("lead", 3, 0, "topic-3", 0)]


def test_what_a_host_failed_at_is_told_again_and_the_others_are_told_anyway(duty):
    key = PartitionKey(topic_id(1), 0)
    duty.host.fails_at.add(key)
    told = duty.commit(topic(1), partition(1, 0, (7,), 7), partition(1, 1, (7,), 7))
    assert [call[2] for call in told] == [0, 1]
    assert duty.view.publisher_failures == 1
    duty.host.fails_at.clear()
    assert duty.commit(NoOpRecord()) == [("lead", 1, 0, "topic-1", 0)]
    assert duty.commit(NoOpRecord()) == []


def test_a_partition_that_a_host_failed_to_begin_is_still_dropped(duty):
    duty.host.fails_at.add(PartitionKey(topic_id(1), 0))
    duty.commit(topic(1), partition(1, 0, (7,), 7))
    duty.host.fails_at.clear()
    assert duty.commit(RemoveTopicRecord(topic_id(1))) == [("drop", 1, 0)]


def test_a_drop_that_failed_is_told_again(duty):
    duty.commit(topic(1), partition(1, 0, (7,), 7))
    duty.host.fails_at.add(PartitionKey(topic_id(1), 0))
    duty.commit(RemoveTopicRecord(topic_id(1)))
    duty.host.fails_at.clear()
    assert duty.commit(NoOpRecord()) == [("drop", 1, 0)]


def test_a_starting_agent_is_told_the_newest_duties_only():
    """What it led in an older time is no order of today."""
    host = Host()
    rig = Rig(publishers=(PartitionDuties(BROKER, host),))
    rig.log.append(topic(1), partition(1, 0, (7, 8), 7))
    for leader in (8, 7, 8):
        rig.log.append(change(0, leader=leader))
    rig.active.batches_at_once = 1
    rig.online()
    assert host.take() == [("follow", 1, 0, "topic-1", 8, 3)]
