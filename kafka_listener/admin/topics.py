"""CreateTopics, DeleteTopics and CreatePartitions, as our routes of topics and partitions.

Rule: each topic of a request is decided by itself, as in Kafka, and the results have the order of
the request. A name that a request has twice is refused at each of its places, and the other topics
are not touched by that.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall, invalid
from kafka_listener.admin.config_numbers import entry_of
from kafka_listener.asking.in_steps import STEP, each, for_each
from kafka_listener.asking.request import Fields, Steps
from kafka_listener.asking.turns import Turns
from metadata.errors import ErrorCode, LogbergError
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
_DISABLED_SINCE: Final = 3
"""From this version of DeleteTopics on, clients know TOPIC_DELETION_DISABLED."""


def create_topics(call: AdminCall) -> Steps:
    """CreateTopics (19)."""
    topics = call.fields["Topics"]
    if not topics:
        call.answer({"Topics": []})
        return
    message = CreateTopicsRequest((yield from _new_topics(topics)), call.dry_run)

    def then(reply: CreateTopicsReply) -> None:
        created = islice((1 for one in reply.topics if one.error is None), SHOWN_CONFIGS_MAX + 1)
        if call.version < 5 or call.dry_run or sum(created) > SHOWN_CONFIGS_MAX:
            call.answer({"Topics": (_created(call, one) for one in reply.topics)})
            return
        _with_configs(call, reply, lambda results: call.answer({"Topics": results}))

    call.change("POST", "/v1/topics", message, CreateTopicsReply, then)


def _new_topics(topics: Sequence[Fields]) -> Generator[None, None, tuple[NewTopic, ...]]:
    made = []
    for topic in topics:
        assignments = yield from each(_assignment, topic["Assignments"])
        configs: dict[str, str | None] = {}
        yield from for_each(partial(_note_config, configs), topic["Configs"])
        made.append(
            NewTopic(
                topic["Name"],
                topic["NumPartitions"],
                topic["ReplicationFactor"],
                assignments,
                configs,
            )
        )
        if not len(made) % STEP:
            yield
    return tuple(made)


def _assignment(fields: Fields) -> ReplicaAssignment:
    return ReplicaAssignment(fields["PartitionIndex"], tuple(fields["BrokerIds"]))


def _note_config(configs: dict[str, str | None], entry: Fields) -> None:
    configs[entry["Name"]] = entry["Value"]


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
    call: AdminCall, reply: CreateTopicsReply, finish: Callable[[Iterable[Fields]], None]
) -> None:
    """Add the configs of the topics that were created. A failed read leaves them out."""
    configs: dict[str, list[dict[str, Any]]] = {}
    waiting = iter([topic.name for topic in reply.topics if topic.error is None])

    def next_topic() -> None:
        name = next(waiting, None)
        if name is None:
            results = (_created(call, topic) for topic in reply.topics)
            finish(
                one | {"Configs": configs[one["Name"]]}
                if one["Name"] in configs and not one["ErrorCode"]
                else one
                for one in results
            )
            return

        def then(outcome: DescribeConfigsReply | LogbergError) -> None:
            if not isinstance(outcome, LogbergError):
                configs[name] = [entry_of(entry) for entry in outcome.configs]
            turns.next()

        call.read_or_error(f"/v1/configs/topic/{name}", DescribeConfigsReply, then)

    turns = Turns(call.clock, next_topic, call.failed_later)
    turns.next()


def delete_topics(call: AdminCall) -> Steps:
    """DeleteTopics (20): by names, from version 6 on also by ids, which are deleted after them."""
    entries: list[Fields] = []
    results: list[dict[str, Any] | None] = []
    by_name: list[int] = []
    by_id: list[int] = []

    def note(entry: Fields) -> None:
        refused = _not_named_once(entry)
        if refused is None:
            (by_id if entry["Name"] is None else by_name).append(len(entries))
        entries.append(entry)
        results.append(refused)

    names_only = ({"Name": name, "TopicId": _NO_ID} for name in call.fields.get("TopicNames") or ())
    yield from for_each(note, chain(names_only, call.fields.get("Topics") or ()))

    def finish() -> None:
        call.answer({"Responses": (result for result in results if result is not None)})

    def delete_ids() -> Steps:
        ids = yield from each(lambda place: uuid_text(entries[place]["TopicId"]), by_id)
        message = DeleteTopicsRequest(topic_ids=ids)
        _delete(call, message, entries, (results, by_id), finish)

    names = yield from each(lambda place: str(entries[place]["Name"]), by_name)
    message = DeleteTopicsRequest(names=names)
    _delete(call, message, entries, (results, by_name), lambda: call.run(delete_ids()))


_Places = tuple[list[dict[str, Any] | None], Sequence[int]]


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

    def note(deleted: tuple[int, DeletedTopic | LogbergError]) -> None:
        index, result = deleted
        results[index] = _deleted(call, entries[index], result)

    def then(outcome: DeleteTopicsReply | LogbergError) -> Steps:
        found: Iterable[DeletedTopic | LogbergError] = (
            repeat(_known_in(call.version, outcome), len(indexes))
            if isinstance(outcome, LogbergError)
            else outcome.topics
        )
        yield from for_each(note, zip(indexes, found, strict=True))
        finish()

    call.change_or_error("DELETE", "/v1/topics", message, DeleteTopicsReply, then)


def _known_in(version: int, error: LogbergError) -> LogbergError:
    """Return an error that clients of this version of DeleteTopics know (KIP-322)."""
    if error.code is ErrorCode.TOPIC_DELETION_DISABLED and version < _DISABLED_SINCE:
        return LogbergError(ErrorCode.INVALID_REQUEST, error.message)
    return error


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


def create_partitions(call: AdminCall) -> Steps:
    """CreatePartitions (37)."""
    topics = call.fields["Topics"]
    if not topics:
        call.answer({"Results": []})
        return
    message = CreatePartitionsRequest((yield from _new_partitions(topics)), call.dry_run)

    def then(reply: CreatePartitionsReply) -> None:
        def result(topic: CreatedPartitions) -> dict[str, Any]:
            return {"Name": topic.name, **call.result(topic.error)}

        call.answer({"Results": map(result, reply.topics)})

    call.change("POST", "/v1/partitions", message, CreatePartitionsReply, then)


def _new_partitions(
    topics: Sequence[Fields],
) -> Generator[None, None, tuple[NewPartitions, ...]]:
    made = []
    for topic in topics:
        listed, assignments = topic["Assignments"], None
        if listed is not None:
            assignments = yield from each(lambda one: tuple(one["BrokerIds"]), listed)
        made.append(NewPartitions(topic["Name"], topic["Count"], assignments))
        if not len(made) % STEP:
            yield
    return tuple(made)
