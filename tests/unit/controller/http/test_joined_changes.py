"""Many changes in one request: each is made, answered and logged as if it had come alone."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.http.joined_changes import may_be_joined
from controller.http.routes import ROUTES, find_route
from metadata.messages.joined_changes import CHANGES_MAX, CHANGES_PATH
from metadata.messages.wire import MSGPACK
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster

BROKER_CALLER = Caller("Broker:1", "certificate", "10.0.0.9")


def request_id(number: int) -> str:
    return uuid_text(uuid7(1_000, number))


def quota(user: str, rate: float, **more: Any) -> dict[str, Any]:
    entity = [{"entityType": "user", "entityName": user}]
    operations = [{"key": "producer_byte_rate", "value": rate}]
    return {"entries": [{"entity": entity, "operations": operations}], **more}


def topic(name: str, **more: Any) -> dict[str, Any]:
    new = {"name": name, "numPartitions": 1, "replicationFactor": 1}
    return {"topics": [new], **more}


def change(method: str, path: str, body: Any = None, **fields: Any) -> dict[str, Any]:
    return {"method": method, "path": path, **({} if body is None else {"body": body}), **fields}


ACL = {"resourceType": "TOPIC", "resourceName": "t", "principal": "User:a", "operation": "READ"}
CHANGES: dict[str, dict[str, Any]] = {
    "a topic": change("POST", "/v1/topics", topic("t1"), requestId=request_id(1)),
    "it again: a retry": change("POST", "/v1/topics", topic("t1"), requestId=request_id(1)),
    "its id for another": change("POST", "/v1/topics", topic("t2"), requestId=request_id(1)),
    "two topics": change(
        "POST",
        "/v1/topics",
        {"topics": topic("t3")["topics"] + topic("t 4")["topics"]},
        requestId=request_id(2),
    ),
    "a name that is taken": change("POST", "/v1/topics", topic("t1"), requestId=request_id(3)),
    "deleted by path": change("DELETE", "/v1/topics/t1", requestId=request_id(4)),
    "deleted, only shown": change("DELETE", "/v1/topics/old?dryRun=true", requestId=request_id(5)),
    "deleted by names": change(
        "DELETE", "/v1/topics", {"names": ["t3", "none"]}, requestId=request_id(6)
    ),
    "a quota": change(
        "POST", "/v1/quotas", quota("a", 1.0), requestId=request_id(7), reason="why", clientId="me"
    ),
    "a quota, only shown": change("POST", "/v1/quotas", quota("b", 1.0, dryRun=True)),
    "on a condition that holds": change(
        "POST", "/v1/quotas", quota("c", 2.0), expectOffset=100_000, requestId=request_id(8)
    ),
    "on a condition that fails": change(
        "POST", "/v1/quotas", quota("a", 3.0), expectOffset=1, requestId=request_id(9)
    ),
    "a config": change(
        "PATCH",
        "/v1/configs/topic/old",
        {"configs": [{"name": "retention.ms", "value": "5"}]},
        requestId=request_id(10),
    ),
    "an entry": change("POST", "/v1/acls", {"acls": [ACL]}, requestId=request_id(11)),
    "an election": change(
        "POST", "/v1/partitions/elect", {"electionType": "PREFERRED"}, requestId=request_id(12)
    ),
    "a field too many": change("POST", "/v1/quotas", {**quota("d", 1.0), "more": 1}),
    "no body": change("POST", "/v1/quotas"),
    "a request id that is none": change("POST", "/v1/quotas", quota("e", 1.0), requestId="x"),
    "a reason on two lines": change("POST", "/v1/quotas", quota("f", 1.0), reason="a\nb"),
    "no such path": change("POST", "/v1/nothing", {}),
    "no such method": change("PUT", "/v1/topics", {}),
}
HEADERS = {
    "requestId": "x-logberg-request-id",
    "reason": "x-logberg-reason",
    "clientId": "x-logberg-client-id",
    "expectOffset": "x-logberg-expect-offset",
}
COMMON = {"x-logberg-reason": "for all", "x-logberg-client-id": "a-program"}


def prepared() -> Cluster:
    """A cluster; any two of them have the same log."""
    cluster = Cluster(seed=7, request_id_ahead_ms=10**15)
    cluster.online(1, 2)
    cluster.create_topic("old", factor=1)
    cluster.run(1.0)
    return cluster


def one_by_one(cluster: Cluster, changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Send changes at the same moment, each alone."""
    sent = []
    for each in changes:
        path, _, query = each["path"].partition("?")
        own = {header: str(each[name]) for name, header in HEADERS.items() if name in each}
        parameters = dict([query.split("=")]) if query else {}
        body = each.get("body")
        sent.append(
            cluster.send(each["method"], path, body, query=parameters, headers={**COMMON, **own})
        )
    cluster.run_until(lambda: all(sent))
    return [
        (reply.status, reply.headers.get("retry-after"), json.loads(reply.body))
        for (reply,) in sent
    ]


def joined(
    cluster: Cluster, changes: list[dict[str, Any]], content_type: str = "application/json"
) -> list[tuple[Any, ...]]:
    """Send changes in one request."""
    is_json = content_type != MSGPACK
    body = (msgspec.json if is_json else msgspec.msgpack).encode({"changes": changes})
    # An agent gives the whole request an id. It is the id of none of the changes.
    whole = {"x-logberg-request-id": request_id(1_000)}
    headers = {**COMMON, **whole, "content-type": content_type}
    sent = cluster.send("POST", CHANGES_PATH, body, headers=headers)
    cluster.run_until(lambda: bool(sent))
    (reply,) = sent
    assert (reply.status, reply.headers["content-type"]) == (200, content_type), reply
    said = (msgspec.json if is_json else msgspec.msgpack).decode(reply.body)["outcomes"]
    return [
        (
            one["status"],
            None if one["retryAfterS"] is None else str(one["retryAfterS"]),
            one["body"],
        )
        for one in said
    ]


def without_drawn_ids(outcomes: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out the ids of requests that brought none: the controller draws those."""
    given = {each["requestId"] for each in CHANGES.values() if "requestId" in each}
    for *_, body in outcomes:
        if body.get("requestId") not in given:
            body.pop("requestId", None)
    return outcomes


@settings(max_examples=25)
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=8), st.booleans())
def test_the_log_and_the_answers_are_those_of_changes_that_come_alone(
    names: list[str], packed: bool
) -> None:
    changes = [CHANGES[name] for name in names]
    alone, together = prepared(), prepared()
    expected = without_drawn_ids(one_by_one(alone, changes))
    found = without_drawn_ids(joined(together, changes, MSGPACK if packed else "application/json"))
    assert found == expected
    logs = [[batch.encoded for batch in cluster.batches()] for cluster in (alone, together)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_each_kind_is_answered_as_alone_and_harms_no_neighbour(name: str) -> None:
    neighbour = change("POST", "/v1/quotas", quota("z", 9.0), requestId=request_id(99))
    alone, together = prepared(), prepared()
    expected = without_drawn_ids(one_by_one(alone, [CHANGES[name], neighbour]))
    assert without_drawn_ids(joined(together, [CHANGES[name], neighbour])) == expected
    assert expected[1][0] == 200


def test_what_may_stand_in_it_is_every_change_whose_request_is_not_long() -> None:
    refused = {route.name for route in ROUTES if not may_be_joined(route)}
    changing = {route.name for route in ROUTES if route.changes}
    assert refused & changing == {"alter_reassignments"}
    assert "make_changes" in refused


@pytest.mark.parametrize(
    "wanted",
    [
        change("GET", "/v1/topics"),
        change("POST", CHANGES_PATH, {"changes": []}),
        change("POST", "/v1/reassignments", {"partitions": []}),
        change("POST", "/v1/metadata/fetch", {}),
        change("POST", "/v1/partitions/alter", {}),
        change("POST", "/v1/quotas/../topics", {}),
        change("POST", "http://elsewhere/v1/topics", {}),
        change("POST", "/v1/quotas%2f", {}),
    ],
    ids=lambda each: each["path"],
)
def test_what_may_not_stand_in_it_is_refused_and_the_others_are_made(
    wanted: dict[str, Any],
) -> None:
    cluster = prepared()
    first, second = joined(cluster, [wanted, CHANGES["a quota"]])
    assert (first[0], first[2]["code"], second[0]) == (400, "INVALID_REQUEST", 200)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"changes": []}, 400, "INVALID_REQUEST"),
        ({"changes": [CHANGES["no body"]] * (CHANGES_MAX + 1)}, 400, "INVALID_REQUEST"),
        ({"changes": [{"method": "POST"}]}, 400, "INVALID_REQUEST"),
        ({"changes": [{**CHANGES["a quota"], "onBehalfOf": "User:root"}]}, 400, "INVALID_REQUEST"),
        (
            {"changes": [change("DELETE", "/v1/topics", {"names": ["n"] * 9_000})] * 2},
            413,
            "BODY_TOO_LARGE",
        ),
        (b"{", 400, "MALFORMED_BODY"),
        (
            msgspec.json.encode({"changes": [CHANGES["a quota"]]})[:-1]
            + b', "waitMs": 1'
            + b"0" * 400
            + b"}",
            400,
            "INVALID_REQUEST",
        ),
    ],
)
def test_a_request_that_is_wrong_as_a_whole_changes_nothing(
    body: Any, status: int, code: str
) -> None:
    cluster = prepared()
    before = cluster.image.offset
    assert cluster.ask("POST", CHANGES_PATH, body)[1]["code"] == code
    assert cluster.ask("POST", CHANGES_PATH, body)[0] == status
    cluster.run(1.0)
    assert cluster.image.offset == before


def test_a_standby_sends_the_whole_request_to_the_leader() -> None:
    cluster = prepared()
    status, reply = cluster.ask("POST", CHANGES_PATH, {"changes": [CHANGES["a quota"]]}, node=2)
    assert (status, reply["code"], reply["leaderUrl"]) == (
        421,
        "NOT_CONTROLLER",
        "http://controller-1",
    )


def test_who_asks_and_why_stands_in_each_batch() -> None:
    cluster = prepared()
    before = cluster.image.offset
    # Two without an id of their own. They must not share that of the whole request.
    without = [change("POST", "/v1/quotas", quota(user, 4.0)) for user in ("x", "y")]
    joined(cluster, [CHANGES["a quota"], *without])
    said = [
        (
            each.header.provenance.principal,
            each.header.provenance.reason,
            each.header.provenance.client_id,
        )
        for each in cluster.batches()
        if each.header.base_offset >= before
    ]
    assert said == [("User:alice", "why", "me")] + [("User:alice", "for all", "a-program")] * 2


def test_after_its_time_a_change_without_an_outcome_is_unknown_and_its_id_finds_out() -> None:
    cluster = prepared()
    sent = cluster.send(
        "POST", CHANGES_PATH, {"changes": [CHANGES["a quota"], CHANGES["no body"]], "waitMs": 0}
    )
    cluster.run_until(lambda: bool(sent))
    late, refused = json.loads(sent[0].body)["outcomes"]
    assert (late["status"], late["body"]["code"], late["retryAfterS"]) == (
        503,
        "REQUEST_TIMED_OUT",
        1,
    )
    assert late["body"]["requestId"] == CHANGES["a quota"]["requestId"]
    assert refused["status"] == 400
    assert joined(cluster, [CHANGES["a quota"]])[0][0] == 200


def test_many_changes_are_submitted_in_slices_and_those_without_a_turn_are_not_made() -> None:
    cluster = prepared()
    clock = cluster.processes[1].clock
    usual, clock.cost_us = clock.cost_us, 100
    changes = [change("POST", "/v1/quotas", quota(f"u{n}", 1.0)) for n in range(900)]
    sent = cluster.send("POST", CHANGES_PATH, {"changes": changes, "waitMs": 0})
    cluster.run_until(lambda: bool(sent))
    codes = [one["body"].get("code", "") for one in json.loads(sent[0].body)["outcomes"]]
    assert codes[-1] == "THROTTLED"
    assert codes[0] == "REQUEST_TIMED_OUT"
    clock.cost_us = usual
    cluster.run(5.0)
    made = sum(
        each.header.provenance.operation == "AlterClientQuotas" for each in cluster.batches()
    )
    assert made == len(changes) - codes.count("THROTTLED")


def test_the_route_itself_changes_nothing_alone() -> None:
    found = find_route("POST", CHANGES_PATH).route
    assert found is not None
    assert not found.changes
