"""IncrementalAlterConfigs and AlterConfigs, as our route of configs.

AlterConfigs is Kafka's old request: it names all configs that a resource has afterwards. So the
present ones are read first, and those that it doesn't name are deleted. The change is made only if
nobody changed the resource between, and is tried anew otherwise.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.admin.config_numbers import kind_of, own_source
from kafka_listener.asking.in_steps import each, for_each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, Steps
from kafka_listener.asking.turns import Turns
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    CLUSTER_DEFAULT,
    AlterConfigsReply,
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    ConfigResourceChange,
    DescribeConfigsReply,
)
from metadata.messages.errors import ErrorReply

_OPERATIONS: Final[Mapping[int, ConfigOperation]] = MappingProxyType(
    {
        0: ConfigOperation.SET,
        1: ConfigOperation.DELETE,
        2: ConfigOperation.APPEND,
        3: ConfigOperation.SUBTRACT,
    }
)
_TRIES: Final = 5
"""How often a replacement is decided anew because somebody else changed the resource."""
_NAME_MAX: Final = 1000
_Error = ErrorReply | LogbergError | None


def incremental_alter_configs(call: AdminCall) -> Steps:
    """IncrementalAlterConfigs (44): all operations on a resource are done, or none."""
    resources = call.fields["Resources"]
    twice = yield from _named_twice(resources)
    results: list[dict[str, Any]] = []
    sent: list[tuple[int, ConfigResourceChange]] = []
    for place, resource in enumerate(resources):
        yield
        try:
            change = yield from _change_of(resource, twice)
        except KafkaFailure as refused:
            results.append(_named(resource) | _refusal(refused))
            continue
        results.append(_named(resource) | call.result(None))
        if change.configs:
            sent.append((place, change))
    if not sent:
        call.answer({"Responses": results})
        return
    message = AlterConfigsRequest(tuple(change for _, change in sent), call.dry_run)

    def note(result: tuple[tuple[int, ConfigResourceChange], _Error]) -> None:
        (place, _), error = result
        results[place] |= call.result(error)

    def then(outcome: AlterConfigsReply | LogbergError) -> Steps:
        yield from for_each(note, zip(sent, _errors(outcome, len(sent)), strict=True))
        call.answer({"Responses": results})

    call.change_or_error("PATCH", "/v1/configs", message, AlterConfigsReply, then)


def alter_configs(call: AdminCall) -> Steps:
    """AlterConfigs (33): each resource has exactly these configs afterwards."""
    resources = call.fields["Resources"]
    twice = yield from _named_twice(resources)
    results: list[dict[str, Any]] = []
    waiting = iter(resources)

    def next_resource() -> None:
        resource = next(waiting, None)
        if resource is None:
            call.answer({"Responses": results})
            return

        def done(error: dict[str, Any]) -> None:
            results.append(_named(resource) | error)
            turns.next()

        try:
            _checked(resource, twice)
        except KafkaFailure as refused:
            done(_refusal(refused))
            return
        _replace(call, resource, done, _TRIES)

    turns = Turns(call.clock, next_resource, call.failed_later)
    turns.next()


def _replace(
    call: AdminCall, resource: Fields, done: Callable[[dict[str, Any]], None], tries: int
) -> None:
    """Read what a resource has, and make the difference one change."""
    kind, name = kind_of(resource["ResourceType"]), resource["ResourceName"]
    source = own_source(resource["ResourceType"], name)
    wanted = {each["Name"]: each["Value"] for each in resource["Configs"]}

    def with_present(outcome: DescribeConfigsReply | LogbergError) -> None:
        if isinstance(outcome, LogbergError):
            done(call.result(outcome))
            return
        present = [entry.name for entry in outcome.configs if entry.source == source]
        changes = [ConfigChange(key, value) for key, value in wanted.items()]
        changes += [
            ConfigChange(key, None, ConfigOperation.DELETE) for key in present if key not in wanted
        ]
        if not changes:
            done(call.result(None))
            return
        change = ConfigResourceChange(kind, name or CLUSTER_DEFAULT, tuple(changes))
        call.change_or_error(
            "PATCH",
            "/v1/configs",
            AlterConfigsRequest((change,), call.dry_run),
            AlterConfigsReply,
            with_result,
            None if call.dry_run else outcome.offset,
        )

    def with_result(outcome: AlterConfigsReply | LogbergError) -> None:
        stale = ErrorCode.STALE_EXPECTED_OFFSET
        if isinstance(outcome, LogbergError) and outcome.code is stale and tries > 1:
            _replace(call, resource, done, tries - 1)
            return
        done(call.result(_errors(outcome, 1)[0]))

    path = f"/v1/configs/{kind}/{quote(name or CLUSTER_DEFAULT, safe='')}"
    call.read_or_error(path, DescribeConfigsReply, with_present)


def _change_of(
    resource: Fields, twice: frozenset[tuple[int, str]]
) -> Generator[None, None, ConfigResourceChange]:
    kind = _checked(resource, twice)
    changes = yield from each(_operation, resource["Configs"])
    name = resource["ResourceName"]
    if not name and kind == "broker":
        name = CLUSTER_DEFAULT
    return ConfigResourceChange(kind, name, changes)


def _operation(entry: Fields) -> ConfigChange:
    operation = _OPERATIONS.get(entry["ConfigOperation"])
    if operation is None:
        raise _refused(f"Unknown operation type {entry['ConfigOperation']}")
    if entry["Value"] is None and operation is not ConfigOperation.DELETE:
        raise _refused(f"Null value not supported for {entry['Name']}")
    return ConfigChange(entry["Name"], entry["Value"], operation)


def _checked(resource: Fields, twice: frozenset[tuple[int, str]]) -> str:
    """Return our word for the resource's type. Raises KafkaFailure for what no route can take."""
    if (resource["ResourceType"], resource["ResourceName"]) in twice:
        raise _refused("Each resource must appear at most once.")
    kind = kind_of(resource["ResourceType"])
    names = [each["Name"] for each in resource["Configs"]]
    if len(set(names)) < len(names):
        raise _refused("Error due to duplicate config keys")
    for name in names:
        if not 1 <= len(name) <= _NAME_MAX:
            raise _refused(f"a config's name has 1 to {_NAME_MAX} characters")
    return kind


def _named_twice(
    resources: Sequence[Fields],
) -> Generator[None, None, frozenset[tuple[int, str]]]:
    once: set[tuple[int, str]] = set()
    twice: set[tuple[int, str]] = set()

    def note(resource: Fields) -> None:
        named = resource["ResourceType"], resource["ResourceName"]
        (twice if named in once else once).add(named)

    yield from for_each(note, resources)
    return frozenset(twice)


def _named(resource: Fields) -> dict[str, Any]:
    return {"ResourceType": resource["ResourceType"], "ResourceName": resource["ResourceName"]}


def _refused(why: str) -> KafkaFailure:
    return KafkaFailure(KafkaCode.INVALID_REQUEST, why)


def _refusal(refused: KafkaFailure) -> dict[str, Any]:
    return {"ErrorCode": int(refused.code), "ErrorMessage": refused.message}


def _errors(outcome: AlterConfigsReply | LogbergError, count: int) -> Sequence[_Error]:
    """Return the error of each resource that was sent."""
    if isinstance(outcome, LogbergError):
        return [outcome] * count
    return [each.error for each in outcome.resources]
