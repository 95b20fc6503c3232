"""Answers DescribeQuorum: who votes, who observes, and how far each has come (KIP-595, 836, 853).

Only the leader knows. Offsets are those of the projected log. A voter's offset is the last one of
which this leader knows that the voter has it durably.
"""

from collections.abc import Callable

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, KafkaRequest
from kafka_listener.quorum_requests.entry_offsets import EntryOffsets
from kafka_listener.quorum_requests.leader_view import TOPIC, LeaderView, QuorumSource
from kafka_listener.quorum_requests.observers import Observers, ReplicaKey, ReplicaProgress
from kafka_listener.wire.schema import Fields
from metadata.records import Voter
from quorum.api import ReplicaState
from runtime.clock import Clock


class DescribeQuorumRequests:
    """Answers DescribeQuorum, on one controller."""

    def __init__(
        self,
        source: QuorumSource,
        clock: Clock,
        view: LeaderView,
        log_end: Callable[[], int],
        observers: Observers,
        entry_offsets: EntryOffsets,
    ) -> None:
        """`log_end` returns the end of the projected log."""
        self._source = source
        self._clock = clock
        self._view = view
        self._log_end = log_end
        self._observers = observers
        self._entry_offsets = entry_offsets

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer one request, at once."""
        asked = request.fields["Topics"]
        # As in Kafka. A request that names the partition many times would have a huge answer.
        alone = sum(len(topic["Partitions"]) for topic in asked) == 1
        topics = (
            {
                "TopicName": topic["TopicName"],
                "Partitions": (
                    self._partition(
                        topic["TopicName"] if alone else "",
                        partition["PartitionIndex"],
                        request.version,
                    )
                    for partition in topic["Partitions"]
                ),
            }
            for topic in asked
        )
        response: Fields = {"ErrorCode": KafkaCode.NONE, "Topics": topics}
        if request.version >= 2:
            response["Nodes"] = [self._node(one, request.listener) for one in self._view.voters]
        answer(response)

    def _partition(self, topic: str, index: int, version: int) -> Fields:
        if (topic, index) != (TOPIC, 0):
            return _refused(index, KafkaCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not self._view.leads:
            return _refused(index, KafkaCode.NOT_LEADER_OR_FOLLOWER)
        now_ms = self._clock.wall_ms()
        return {
            "PartitionIndex": index,
            "ErrorCode": KafkaCode.NONE,
            "LeaderId": self._view.leader,
            "LeaderEpoch": self._view.epoch,
            "HighWatermark": self._log_end(),
            "CurrentVoters": [
                _replica(ReplicaKey(voter, directory), progress, version)
                for voter, directory, progress in self._voters(now_ms)
            ],
            "Observers": (
                _replica(key, progress, version) for key, progress in self._observers.at(now_ms)
            ),
        }

    def _voters(self, now_ms: int) -> list[tuple[int, bytes, ReplicaProgress]]:
        status = self._source.quorum.status()
        known = {(one.node_id, one.directory_id): one for one in status.replicas}
        own = ReplicaProgress(self._log_end(), now_ms, now_ms)
        found = []
        for voter in self._view.voters:
            key = (voter.voter_id, voter.voter_directory_id)
            state = known.get(key)
            if key == (status.node_id, status.directory_id):
                found.append((*key, own))
            elif state is not None:
                found.append((*key, self._progress(state, now_ms)))
            else:
                found.append((*key, ReplicaProgress(-1, -1, -1)))
        return found

    def _progress(self, state: ReplicaState, now_ms: int) -> ReplicaProgress:
        """Return how far another voter has come, as far as the leader knows."""
        log_end = self._log_end()
        offset = min(self._entry_offsets.offset_at(state.match_index), log_end)
        heard_ms = -1 if state.last_contact_s < 0 else now_ms - round(state.last_contact_s * 1000)
        return ReplicaProgress(offset, heard_ms, heard_ms if offset >= log_end else -1)

    def _node(self, voter: Voter, listener: str) -> Fields:
        return {
            "NodeId": voter.voter_id,
            "Listeners": [
                {"Name": point.name, "Host": point.host, "Port": point.port}
                for point in self._view.endpoints_of(voter, listener)
            ],
        }


def _refused(index: int, code: KafkaCode) -> Fields:
    return {
        "PartitionIndex": index,
        "ErrorCode": code,
        "LeaderId": -1,
        "LeaderEpoch": -1,
        "HighWatermark": -1,
        "CurrentVoters": [],
        "Observers": [],
    }


def _replica(key: ReplicaKey, progress: ReplicaProgress, version: int) -> Fields:
    found: Fields = {"ReplicaId": key.replica_id, "LogEndOffset": progress.end_offset}
    if version >= 1:
        found["LastFetchTimestamp"] = progress.fetched_ms
        found["LastCaughtUpTimestamp"] = progress.caught_up_ms
    if version >= 2:
        found["ReplicaDirectoryId"] = key.directory_id
    return found
