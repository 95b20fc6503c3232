"""ElectLeaders, and reassignments (KIP-455, 460), as our routes of partitions.

Rule: an error of one partition stands at the partition. Our routes refuse a request for one
partition as a whole; `_of_the_only_one` puts that error back to its place.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    ElectionType,
    ElectLeadersReply,
    ElectLeadersRequest,
    ListReassignmentsReply,
    Reassignment,
    RunningReassignment,
    TopicPartitions,
)

_ELECTIONS: Final[Mapping[int, ElectionType]] = {
    0: ElectionType.PREFERRED,
    1: ElectionType.UNCLEAN,
}
_E = ErrorCode
_OF_A_PARTITION: Final = frozenset(
    {
        _E.ELECTION_NOT_NEEDED,
        _E.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        _E.INVALID_REPLICATION_FACTOR,
        _E.INVALID_REPLICA_ASSIGNMENT,
        _E.NO_REASSIGNMENT_IN_PROGRESS,
        _E.PREFERRED_LEADER_NOT_AVAILABLE,
        _E.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def elect_leaders(call: AdminCall) -> None:
    """ElectLeaders (43): of these partitions, or of all that need an election."""
    topics = call.fields["TopicPartitions"]
    election = _ELECTIONS.get(call.fields.get("ElectionType", 0))
    if election is None:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST, f"Unknown election type {call.fields['ElectionType']}"
        )
    wanted = None
    if topics is not None:
        wanted = tuple(TopicPartitions(each["Topic"], tuple(each["Partitions"])) for each in topics)
    message = ElectLeadersRequest(election, wanted)

    def then(outcome: ElectLeadersReply | LogbergError) -> None:
        if isinstance(outcome, LogbergError):
            only = _of_the_only_one(
                outcome,
                [(each.topic, index) for each in wanted or () for index in each.partitions],
            )
            if only is None:
                call.fail(outcome)
                return
            name, index = only
            result = {"PartitionId": index, **call.result(outcome)}
            results = [{"Topic": name, "PartitionResult": [result]}]
            call.answer({"ErrorCode": 0, "ReplicaElectionResults": results})
            return
        results = [
            {
                "Topic": topic.topic,
                "PartitionResult": [
                    {"PartitionId": each.partition_id, **call.result(each.error)}
                    for each in topic.partition_result
                ],
            }
            for topic in outcome.replica_election_results
        ]
        call.answer({"ErrorCode": 0, "ReplicaElectionResults": results})

    call.change_or_error("POST", "/v1/partitions/elect", message, ElectLeadersReply, then)


def _of_the_only_one(
    error: LogbergError, asked: Sequence[tuple[str, int]]
) -> tuple[str, int] | None:
    """Return the one partition that a request asks about, if this error is about it."""
    if len(asked) != 1 or error.code not in _OF_A_PARTITION:
        return None
    return asked[0]


def alter_partition_reassignments(call: AdminCall) -> None:
    """AlterPartitionReassignments (45): starts, replaces and cancels."""
    allow = bool(call.fields.get("AllowReplicationFactorChange", True))
    wanted = tuple(
        Reassignment(topic["Name"], each["PartitionIndex"], _replicas(each))
        for topic in call.fields["Topics"]
        for each in topic["Partitions"]
    )
    if not wanted:
        call.answer({"AllowReplicationFactorChange": allow, "Responses": [], **call.result(None)})
        return
    message = AlterReassignmentsRequest(wanted, allow)

    def then(outcome: AlterReassignmentsReply | LogbergError) -> None:
        topics: dict[str, list[dict[str, Any]]] = defaultdict(list)
        if isinstance(outcome, LogbergError):
            only = _of_the_only_one(outcome, [(each.topic, each.partition) for each in wanted])
            if only is None:
                call.fail(outcome)
                return
            name, index = only
            topics[name].append({"PartitionIndex": index, **call.result(outcome)})
        else:
            for each in outcome.partitions:
                result = {"PartitionIndex": each.partition, **call.result(each.error)}
                topics[each.topic].append(result)
        responses = [{"Name": name, "Partitions": found} for name, found in topics.items()]
        call.answer(
            {"AllowReplicationFactorChange": allow, "Responses": responses, **call.result(None)}
        )

    call.change_or_error("POST", "/v1/reassignments", message, AlterReassignmentsReply, then)


def _replicas(partition: Fields) -> tuple[int, ...] | None:
    replicas = partition["Replicas"]
    return None if replicas is None else tuple(replicas)


def list_partition_reassignments(call: AdminCall) -> None:
    """ListPartitionReassignments (46): of these partitions, or all that run."""
    topics = call.fields["Topics"]
    wanted = (
        None
        if topics is None
        else {(topic["Name"], index) for topic in topics for index in topic["PartitionIndexes"]}
    )

    def then(pages: list[ListReassignmentsReply]) -> None:
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in (each for page in pages for each in page.partitions):
            if wanted is None or (each.topic, each.partition) in wanted:
                found[each.topic].append(_running(each))
        listed = [{"Name": name, "Partitions": running} for name, running in found.items()]
        call.answer({"Topics": listed, **call.result(None)})

    call.read_all("/v1/reassignments", ListReassignmentsReply, then)


def _running(each: RunningReassignment) -> dict[str, Any]:
    return {
        "PartitionIndex": each.partition,
        "Replicas": list(each.replicas),
        "AddingReplicas": list(each.adding_replicas),
        "RemovingReplicas": list(each.removing_replicas),
    }
