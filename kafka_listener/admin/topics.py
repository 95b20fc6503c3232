"""CreateTopics, DeleteTopics and CreatePartitions, as our routes of topics and partitions.

Rule: each topic of a request is decided by itself, as in Kafka, and the results have the order of
the request. A name that a request has twice is refused at each of its places, and the other topics
are not touched by that.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall, invalid
from kafka_listener.admin.config_numbers import entry_of
from kafka_listener.asking.request import Fields
from kafka_listener.asking.turns import Turns
from metadata.errors import LogbergError
from metadata.messages import (
    CreatedPartitions,
    CreatedTopic,
    CreatePartitionsReply,
    CreatePartitionsRequest,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeletedTopic,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    DescribeConfigsReply,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
)
from metadata.uuids import parse_uuid, uuid_text

SHOWN_CONFIGS_MAX: Final = 20
"""The most topics of one request whose configs stand in the response. Each is read by itself."""
_NO_ID: Final = bytes(16)


def create_topics(call: AdminCall) -> None:
    """CreateTopics (19)."""
    topics = call.fields["Topics"]
    if not topics:
        call.answer({"Topics": []})
        return
    message = CreateTopicsRequest(tuple(map(_new_topic, topics)), call.dry_run)

    def then(reply: CreateTopicsReply) -> None:
        results = [_created(call, each) for each in reply.topics]
        shown = [each["Name"] for each in results if not each["ErrorCode"]]
        if call.version < 5 or call.dry_run or len(shown) > SHOWN_CONFIGS_MAX:
            call.answer({"Topics": results})
            return
        _with_configs(call, results, lambda: call.answer({"Topics": results}))

    call.change("POST", "/v1/topics", message, CreateTopicsReply, then)


def _new_topic(topic: Fields) -> NewTopic:
    return NewTopic(
        topic["Name"],
        topic["NumPartitions"],
        topic["ReplicationFactor"],
        tuple(
            ReplicaAssignment(each["PartitionIndex"], tuple(each["BrokerIds"]))
            for each in topic["Assignments"]
        ),
        {each["Name"]: each["Value"] for each in topic["Configs"]},
    )


def _created(call: AdminCall, topic: CreatedTopic) -> dict[str, Any]:
    if topic.error is not None:
        return {"Name": topic.name, "Configs": None, **call.result(topic.error)}
    return {
        "Name": topic.name,
        "TopicId": _NO_ID if topic.topic_id is None else parse_uuid(topic.topic_id),
        "NumPartitions": topic.num_partitions,
        "ReplicationFactor": topic.replication_factor,
        "Configs": [],
        **call.result(None),
    }


def _with_configs(
    call: AdminCall, results: list[dict[str, Any]], finish: Callable[[], None]
) -> None:
    """Add the configs of the topics that were created. A failed read leaves them out."""
    waiting = iter([each for each in results if not each["ErrorCode"]])

    def next_topic() -> None:
        topic = next(waiting, None)
        if topic is None:
            finish()
            return

        def then(outcome: DescribeConfigsReply | LogbergError) -> None:
            if not isinstance(outcome, LogbergError):
                topic["Configs"] = [entry_of(entry) for entry in outcome.configs]
            turns.next()

        call.read_or_error(f"/v1/configs/topic/{topic['Name']}", DescribeConfigsReply, then)

    turns = Turns(next_topic)
    turns.next()


def delete_topics(call: AdminCall) -> None:
    """DeleteTopics (20): by names, from version 6 on also by ids, which are deleted after them."""
    wanted = call.fields.get("TopicNames") or []
    entries: list[Fields] = [{"Name": name, "TopicId": _NO_ID} for name in wanted]
    entries += call.fields.get("Topics") or []
    results: list[dict[str, Any] | None] = [_not_named_once(entry) for entry in entries]
    by_name = [i for i, e in enumerate(entries) if results[i] is None and e["Name"] is not None]
    by_id = [i for i, e in enumerate(entries) if results[i] is None and e["Name"] is None]

    def finish() -> None:
        call.answer({"Responses": [result for result in results if result is not None]})

    def delete_ids() -> None:
        ids = tuple(uuid_text(entries[i]["TopicId"]) for i in by_id)
        message = DeleteTopicsRequest(topic_ids=ids)
        _delete(call, message, entries, _places(results, by_id), finish)

    names = tuple(entries[i]["Name"] for i in by_name)
    message = DeleteTopicsRequest(names=names)
    _delete(call, message, entries, _places(results, by_name), delete_ids)


_Places = tuple[list[dict[str, Any] | None], Sequence[int]]


def _places(results: list[dict[str, Any] | None], indexes: Sequence[int]) -> _Places:
    return results, indexes


def _delete(
    call: AdminCall,
    message: DeleteTopicsRequest,
    entries: Sequence[Fields],
    places: _Places,
    finish: Callable[[], None],
) -> None:
    """Delete what `message` names, and note the results at `places`."""
    results, indexes = places
    if not indexes:
        finish()
        return

    def then(outcome: DeleteTopicsReply | LogbergError) -> None:
        found: Iterator[DeletedTopic | LogbergError] = (
            iter([outcome] * len(indexes))
            if isinstance(outcome, LogbergError)
            else iter(outcome.topics)
        )
        for index, result in zip(indexes, found, strict=True):
            results[index] = _deleted(call, entries[index], result)
        finish()

    call.change_or_error("DELETE", "/v1/topics", message, DeleteTopicsReply, then)


def _deleted(call: AdminCall, entry: Fields, result: DeletedTopic | LogbergError) -> dict[str, Any]:
    name, topic_id = entry["Name"], entry["TopicId"]
    if isinstance(result, LogbergError):
        return {"Name": name, "TopicId": topic_id, **call.result(result)}
    if result.error is None:
        name = result.name if name is None else name
        topic_id = topic_id if result.topic_id is None else parse_uuid(result.topic_id)
    return {"Name": name, "TopicId": topic_id, **call.result(result.error)}


def _not_named_once(entry: Fields) -> dict[str, Any] | None:
    """Return the refusal of an entry that names a topic in two ways or not at all."""
    name, topic_id = entry["Name"], entry["TopicId"]
    if name is not None and topic_id != _NO_ID:
        why = "You may not specify both topic name and topic id."
    elif name is None and topic_id == _NO_ID:
        why = "Neither topic name nor id were specified."
    else:
        return None
    return {"Name": name, "TopicId": topic_id, **invalid(why)}


def create_partitions(call: AdminCall) -> None:
    """CreatePartitions (37)."""
    topics = call.fields["Topics"]
    if not topics:
        call.answer({"Results": []})
        return
    message = CreatePartitionsRequest(
        tuple(
            NewPartitions(
                topic["Name"],
                topic["Count"],
                None
                if topic["Assignments"] is None
                else tuple(tuple(each["BrokerIds"]) for each in topic["Assignments"]),
            )
            for topic in topics
        ),
        call.dry_run,
    )

    def then(reply: CreatePartitionsReply) -> None:
        def result(topic: CreatedPartitions) -> dict[str, Any]:
            return {"Name": topic.name, **call.result(topic.error)}

        call.answer({"Results": list(map(result, reply.topics))})

    call.change("POST", "/v1/partitions", message, CreatePartitionsReply, then)
