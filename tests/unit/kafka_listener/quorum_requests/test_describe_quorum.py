"""DescribeQuorum: who votes, who observes, and how far each has come."""

from typing import Any

from kafka_listener.quorum_requests.entry_offsets import EntryOffsets
from kafka_listener.quorum_requests.handlers import DESCRIBE_QUORUM
from kafka_listener.quorum_requests.observers import Observers, ReplicaKey, ReplicaProgress
from metadata.records import NoOpRecord
from tests.kafka_quorum import DIRECTORY, KafkaCluster


def partition_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["Topics"][0]["Partitions"][0]
    return found


def test_the_leader_tells_voters_and_observers() -> None:
    cluster = KafkaCluster()
    cluster.fetched(offset=3, last_epoch=1)
    said = partition_of(cluster.describe_quorum())
    assert (said["LeaderId"], said["LeaderEpoch"], said["HighWatermark"]) == (1, 1, cluster.end())
    assert [voter["ReplicaId"] for voter in said["CurrentVoters"]] == [1, 2, 3]
    assert said["CurrentVoters"][0]["LogEndOffset"] == cluster.end()
    [observer] = said["Observers"]
    assert (observer["ReplicaId"], observer["ReplicaDirectoryId"]) == (11, DIRECTORY)
    assert (observer["LogEndOffset"], observer["LastCaughtUpTimestamp"]) == (3, -1)
    cluster.fetch(offset=cluster.end(), last_epoch=1, replica=11)
    [observer] = partition_of(cluster.describe_quorum())["Observers"]
    assert observer["LastCaughtUpTimestamp"] == observer["LastFetchTimestamp"] > 0


def test_older_versions_can_be_answered() -> None:
    cluster = KafkaCluster()
    cluster.fetched()
    for version in (0, 1):
        [observer] = partition_of(cluster.describe_quorum(version=version))["Observers"]
        assert observer["ReplicaId"] == 11


def test_a_standby_and_another_topic_are_refused() -> None:
    cluster = KafkaCluster()
    assert partition_of(cluster.describe_quorum(2))["ErrorCode"] == 6
    topic = {"TopicName": "orders", "Partitions": [{"PartitionIndex": 0}]}
    [answer] = cluster.ask_kafka(1, DESCRIBE_QUORUM, 2, {"Topics": [topic]})
    assert partition_of(answer)["ErrorCode"] == 3


def test_observers_are_forgotten_with_the_epoch_and_after_a_silence() -> None:
    cluster = KafkaCluster()
    cluster.fetched()
    cluster.run(310.0)
    assert partition_of(cluster.describe_quorum())["Observers"] == []
    cluster.fetched()
    cluster.lead(2)
    cluster.lead(1)
    assert partition_of(cluster.describe_quorum())["Observers"] == []


def test_the_observer_that_was_silent_for_longest_gives_way() -> None:
    observers = Observers()
    for replica in range(2_001):
        observers.note(ReplicaKey(replica, b""), 5, 7, now_ms=1_000 + replica)
    told = observers.at(3_001)
    assert (len(told), told[0][0].replica_id) == (2_000, 1)
    assert told[0][1] == ReplicaProgress(5, 1_001, -1)


def test_a_voter_has_at_least_the_newest_known_offset_before_its_entry() -> None:
    offsets = EntryOffsets()
    assert offsets.offset_at(9) == -1
    for entry, log_end in ((3, 10), (3, 99), (5, 20)):
        offsets.note(entry, log_end)
    assert [offsets.offset_at(entry) for entry in (2, 3, 4, 5, 6)] == [-1, 10, 10, 20, 20]
    offsets.clear()
    assert offsets.offset_at(5) == -1


def test_a_record_moves_the_end_that_is_told() -> None:
    cluster = KafkaCluster()
    before = partition_of(cluster.describe_quorum())["HighWatermark"]
    cluster.decide(NoOpRecord())
    assert partition_of(cluster.describe_quorum())["HighWatermark"] == before + 1


def test_a_request_that_names_the_log_many_times_gets_no_answer_many_times_as_large() -> None:
    cluster = KafkaCluster()
    many = [{"PartitionIndex": 0}] * 500
    topic = {"TopicName": "__cluster_metadata", "Partitions": many}
    [answer] = cluster.ask_kafka(1, DESCRIBE_QUORUM, 2, {"Topics": [topic]})
    partitions = answer["Topics"][0]["Partitions"]
    assert {(one["ErrorCode"], len(one["CurrentVoters"])) for one in partitions} == {(3, 0)}
