"""DescribeQuorum for clients of agents, as our route of the quorum (KIP-595, 836).

A controller answers this request itself (`quorum_requests`). An agent asks the leader's route,
which knows of each voter how much of the journal it has, and not which offset of the log. So a
voter that has all committed entries stands at the log's end. For any other voter the offset is -1,
unknown. Brokers are not listed as observers: agents fetch from any controller.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.kafka_code import KafkaCode
from metadata.messages import QuorumReply
from metadata.messages.quorum import QuorumMember
from metadata.uuids import parse_uuid

_TOPIC: Final = "__cluster_metadata"
_UNKNOWN: Final = -1
_LEADER: Final = "leader"
_WITH_DIRECTORIES: Final = 2
"""From this version on the response has ids of directories, and addresses."""
_LISTENER: Final = "QUORUM"
"""The name that the log has for the addresses of controllers among themselves."""


def describe_quorum(call: AdminCall, wall_ms: Callable[[], int]) -> None:
    """DescribeQuorum (55). `wall_ms` reads the clock, for the times of the last contacts."""

    def then(reply: QuorumReply) -> None:
        seen = _SeenQuorum(reply, call.version, wall_ms())
        topics = (
            {
                "TopicName": topic["TopicName"],
                "Partitions": (
                    seen.partition(topic["TopicName"], each["PartitionIndex"])
                    for each in topic["Partitions"]
                ),
            }
            for topic in call.fields["Topics"]
        )
        response: dict[str, Any] = {"ErrorCode": 0, "Topics": topics}
        if call.version >= _WITH_DIRECTORIES:
            response["Nodes"] = [_node(member) for member in reply.members if member.is_voter]
        call.answer(response)

    call.read("/v1/quorum", QuorumReply, then)


class _SeenQuorum(NamedTuple):
    """The quorum as a controller saw it at a moment."""

    reply: QuorumReply
    version: int
    """Of the response."""
    now_ms: int

    def partition(self, topic: str, index: int) -> dict[str, Any]:
        """Return one partition of the response; only that of the metadata log exists."""
        reply = self.reply
        found: dict[str, Any] = {
            "PartitionIndex": index,
            "LeaderId": _UNKNOWN,
            "LeaderEpoch": _UNKNOWN,
            "HighWatermark": _UNKNOWN,
            "CurrentVoters": [],
            "Observers": [],
        }
        if (topic, index) != (_TOPIC, 0):
            return {**found, "ErrorCode": int(KafkaCode.UNKNOWN_TOPIC_OR_PARTITION)}
        if reply.role != _LEADER:
            return {**found, "ErrorCode": int(KafkaCode.NOT_LEADER_OR_FOLLOWER)}
        return {
            **found,
            "ErrorCode": 0,
            "LeaderId": reply.node_id,
            "LeaderEpoch": reply.leader_epoch,
            "HighWatermark": reply.high_watermark,
            "CurrentVoters": [self._replica(one) for one in reply.members if one.is_voter],
            "Observers": [self._replica(one) for one in reply.members if not one.is_voter],
        }

    def _replica(self, member: QuorumMember) -> dict[str, Any]:
        is_leader = member.node_id == self.reply.node_id
        has_all = is_leader or member.match_index >= self.reply.commit_index
        found: dict[str, Any] = {
            "ReplicaId": member.node_id,
            "LogEndOffset": self.reply.high_watermark if has_all else _UNKNOWN,
        }
        if self.version >= 1:
            heard_ms = _UNKNOWN
            if is_leader:
                heard_ms = self.now_ms
            elif member.last_contact_ms is not None:
                heard_ms = self.now_ms - member.last_contact_ms
            found["LastFetchTimestamp"] = heard_ms
            found["LastCaughtUpTimestamp"] = heard_ms if has_all else _UNKNOWN
        if self.version >= _WITH_DIRECTORIES:
            found["ReplicaDirectoryId"] = parse_uuid(member.directory_id)
        return found


def _node(member: QuorumMember) -> dict[str, Any]:
    listener = {"Name": _LISTENER, "Host": member.host, "Port": member.port}
    return {"NodeId": member.node_id, "Listeners": [listener]}
