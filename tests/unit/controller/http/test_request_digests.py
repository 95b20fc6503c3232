"""A request id stands for one request: its digest covers every field that the decision reads.

Rule: the requests are made from the declarations of routes and messages, so a new field or a new
parameter is tried without a change here.
"""

from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from msgspec import inspect

from controller.http.change_routes import CHANGES
from controller.http.clients.asked import Asked
from controller.http.route import Route
from controller.http.routes import ROUTES
from controller.leader.idempotency import request_key
from metadata.messages.long_lists import decode_long
from metadata.messages.wire import MSGPACK
from metadata.records import RegisterControllerRecord
from metadata.sealing import ClusterKey
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Request
from tests.unit.controller.cluster import Broker, Cluster

KEY = ClusterKey(b"\x07" * 32)
CHANGING = {route.name: route for route in ROUTES if route.changes}
NOT_REMEMBERED = ("dryRun", "dry_run")
"""A dry run has no outcome, so its request id is never looked for."""
ARGUMENTS = {"id": "7", "name": "n", "type": "topic"}


@pytest.fixture(scope="module")
def cluster() -> Any:
    return Cluster(nodes=1, cluster_key=KEY)


def values(kind: Any) -> list[Any]:
    """Return different values of a type; the first is the one that a sample has."""
    match kind:
        case inspect.BoolType():
            return [False, True]
        case inspect.IntType():
            return [1, 2]
        case inspect.FloatType():
            return [1.5, 2.5]
        case inspect.StrType():
            return ["a", "b"]
        case inspect.BytesType():
            return [b"a", b"b"]
        case inspect.EnumType():
            return list(kind.cls)
        case inspect.LiteralType():
            return list(kind.values)
        case inspect.VarTupleType():
            item = values(kind.item_type)
            made = [*((one,) for one in item), (), (item[0], item[0])]
            return [each for each in made if len(each) >= (kind.min_length or 0)]
        case inspect.DictType():
            key, value = values(kind.key_type), values(kind.value_type)
            return [{key[0]: value[0]}, {key[1]: value[0]}, {key[0]: value[1]}, {}]
        case inspect.StructType():
            return [kind.cls(**fields) for _, fields in structs(kind)]
        case inspect.UnionType():
            some = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
            found = [value for each in some for value in values(each)]
            return found + [None] * (len(some) < len(kind.types))
    raise AssertionError(f"no values of {kind}")


def structs(kind: inspect.StructType) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of a sample, and then of one struct for each other value of each field."""
    sample = {field.name: values(field.type)[0] for field in kind.fields}
    yield "", sample
    for field in kind.fields:
        for value in values(field.type)[1:]:
            if field.name not in NOT_REMEMBERED:
                yield field.name, {**sample, field.name: value}


def messages(route: Route) -> Iterator[tuple[str, Any]]:
    if route.request is None:
        yield "", None
        return
    kind = inspect.type_info(route.request)
    assert isinstance(kind, inspect.StructType)
    for name, fields in structs(kind):
        yield name, decoded(route, kind.cls(**fields))


def decoded(route: Route, message: Any) -> Any:
    """Return what the change of a route gets: a long request comes in parts."""
    if not route.long_list:
        return message
    body = msgspec.msgpack.encode(message)
    steps = decode_long(type(message), route.long_list, body, MSGPACK)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def queries(route: Route) -> Iterator[tuple[str, dict[str, str]]]:
    yield "", {}
    for parameter in route.parameters:
        if parameter.name not in NOT_REMEMBERED:
            yield parameter.name, {parameter.name: {"boolean": "true"}.get(parameter.kind, "7")}


def digest(cluster: Any, route: Route, message: Any, query: dict[str, str]) -> bytes:
    path = route.path.format(**ARGUMENTS)
    caller = Caller("User:alice", "token", "10.0.0.7")
    if route.name == "join":
        caller = Caller("JoinToken:a", "token", "10.0.0.7", only_path=path)
    request = Request(route.method, path, b"", query=query, caller=caller)
    asked = Asked(request, ARGUMENTS, message)
    change = CHANGES[route.name](cluster.leader._leader, asked)
    return request_key(request, change.meaning(), 0, Random(1)).digest


@pytest.mark.parametrize("name", CHANGING)
def test_another_field_or_parameter_is_another_request(cluster: Any, name: str) -> None:
    route = CHANGING[name]
    tried = [
        (f"{name} {field}?{urlencode(query)}", digest(cluster, route, message, query))
        for field, message in messages(route)
        for _, query in queries(route)
    ]
    firsts: dict[bytes, str] = {}
    same = [(firsts.setdefault(found, what), what) for what, found in tried]
    assert [pair for pair in same if pair[0] is not pair[1]] == []


def test_there_are_requests_of_each_kind() -> None:
    assert set(CHANGING) == set(CHANGES)


@pytest.mark.parametrize("path", ["/v1/brokers/8", "/v1/controllers/9"])
@pytest.mark.parametrize("forced", [False, True])
def test_a_retry_with_another_force_is_refused(path: str, forced: bool) -> None:
    cluster: Any = Cluster(nodes=1)
    Broker(cluster, 8).register()
    cluster.write(RegisterControllerRecord(9, b"i" * 16, False, (), ()))
    queries = ({"force": "true"}, {})
    first, other = queries if forced else reversed(queries)
    headers = {"x-logberg-request-id": uuid_text(uuid7(cluster.leader.image.timestamp_ms, 1))}
    assert cluster.ask("DELETE", path, query=first, headers=headers)[0] == 200
    end = cluster.image.offset
    refused, reply = cluster.ask("DELETE", path, query=other, headers=headers)
    assert (refused, reply["code"]) == (409, "REQUEST_ID_REUSED")
    assert cluster.ask("DELETE", path, query=first, headers=headers)[0] == 200
    assert cluster.image.offset == end
