"""ElectLeaders, and reassignments (KIP-455, 460), as our routes of partitions.

Rule: an error of one partition stands at the partition. Our routes refuse a request for one
partition as a whole; `_of_the_only_one` puts that error back to its place.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import each, for_each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, Steps
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
from metadata.messages.reassignments import AlteredReassignment

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


def elect_leaders(call: AdminCall) -> Steps:
    """ElectLeaders (43): of these partitions, or of all that need an election."""
    topics = call.fields["TopicPartitions"]
    election = _ELECTIONS.get(call.fields.get("ElectionType", 0))
    if election is None:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST, f"Unknown election type {call.fields['ElectionType']}"
        )
    wanted = None
    if topics is not None:
        wanted = yield from each(
            lambda topic: TopicPartitions(topic["Topic"], tuple(topic["Partitions"])), topics
        )
    message = ElectLeadersRequest(election, wanted)

    def then(outcome: ElectLeadersReply | LogbergError) -> None:
        if isinstance(outcome, LogbergError):
            asked = ((one.topic, index) for one in wanted or () for index in one.partitions)
            only = _of_the_only_one(outcome, asked)
            if only is None:
                call.fail(outcome)
                return
            name, index = only
            result = {"PartitionId": index, **call.result(outcome)}
            results = [{"Topic": name, "PartitionResult": [result]}]
            call.answer({"ErrorCode": 0, "ReplicaElectionResults": results})
            return
        elected = (
            {
                "Topic": topic.topic,
                "PartitionResult": (
                    {"PartitionId": one.partition_id, **call.result(one.error)}
                    for one in topic.partition_result
                ),
            }
            for topic in outcome.replica_election_results
        )
        call.answer({"ErrorCode": 0, "ReplicaElectionResults": elected})

    call.change_or_error("POST", "/v1/partitions/elect", message, ElectLeadersReply, then)


def _of_the_only_one(
    error: LogbergError, asked: Iterable[tuple[str, int]]
) -> tuple[str, int] | None:
    """Return the one partition that a request asks about, if this error is about it."""
    first_two = list(islice(asked, 2))
    if len(first_two) != 1 or error.code not in _OF_A_PARTITION:
        return None
    return first_two[0]


def alter_partition_reassignments(call: AdminCall) -> Steps:
    """AlterPartitionReassignments (45): starts, replaces and cancels."""
    allow = bool(call.fields.get("AllowReplicationFactorChange", True))
    wanted = yield from each(
        lambda named: Reassignment(named[0], named[1]["PartitionIndex"], _replicas(named[1])),
        (
            (topic["Name"], partition)
            for topic in call.fields["Topics"]
            for partition in topic["Partitions"]
        ),
    )
    if not wanted:
        call.answer({"AllowReplicationFactorChange": allow, "Responses": [], **call.result(None)})
        return
    message = AlterReassignmentsRequest(wanted, allow)

    def then(outcome: AlterReassignmentsReply | LogbergError) -> Steps:
        topics: dict[str, list[dict[str, Any]]] = defaultdict(list)

        def note(altered: AlteredReassignment) -> None:
            result = {"PartitionIndex": altered.partition, **call.result(altered.error)}
            topics[altered.topic].append(result)

        if isinstance(outcome, LogbergError):
            only = _of_the_only_one(outcome, ((one.topic, one.partition) for one in wanted))
            if only is None:
                call.fail(outcome)
                return
            name, index = only
            topics[name].append({"PartitionIndex": index, **call.result(outcome)})
        else:
            yield from for_each(note, outcome.partitions)
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

    def then(pages: list[ListReassignmentsReply]) -> Steps:
        moving: set[str] = set()
        yield from for_each(moving.add, (one.topic for page in pages for one in page.partitions))
        wanted: dict[str, set[int]] = defaultdict(set)

        def want(topic: Fields) -> None:
            if topic["Name"] in moving:
                wanted[topic["Name"]].update(topic["PartitionIndexes"])

        yield from for_each(want, topics or ())
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)

        def note(one: RunningReassignment) -> None:
            if topics is None or one.partition in wanted[one.topic]:
                found[one.topic].append(_running(one))

        yield from for_each(note, (one for page in pages for one in page.partitions))
        listed = [{"Name": name, "Partitions": running} for name, running in found.items()]
        call.answer({"Topics": listed, **call.result(None)})

    call.read_all("/v1/reassignments", ListReassignmentsReply, then)


def _running(one: RunningReassignment) -> dict[str, Any]:
    return {
        "PartitionIndex": one.partition,
        "Replicas": list(one.replicas),
        "AddingReplicas": list(one.adding_replicas),
        "RemovingReplicas": list(one.removing_replicas),
    }
