"""Every route, asked with every credential of every role, over every transport, of every node.

The expected answer of a cell doesn't come from the table of rights. It comes from the lists below,
which say in words what a role may do. A route that stands in no list fails.

The leader and a standby are asked, each with and without the parameters by which a caller says how
new an answer must be. All routes are asked with them, also those that take none.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from controller.access.route_access import ROUTE_ACCESS
from controller.http.joined_changes import may_be_joined
from controller.http.route import Route
from controller.http.routes import ROUTES
from metadata.messages import WantedState
from metadata.messages.wire import MSGPACK, decode_fetch_reply
from runtime.http.requests import Caller, Request, whole
from tests.unit.controller.access.requests import BROKER, ROOT, granted, request_of
from tests.unit.controller.cluster import Broker, Cluster

pytestmark = pytest.mark.simulation

ANYBODY = {"live", "ready", "metrics", "authority"}
WHOEVER_IS_KNOWN = {
    "openapi_document",
    "describe_caller",
    "read_signed_head",
    "read_tile",
    "create_token",
    "renew_token",
    "expire_token",
    "join",
}
LISTS = {"list_topics", "list_partitions", "list_reassignments", "list_configs"}
"""Whoever is known gets them, with what it may see (`test_lists`)."""
A_LETTER = {"make_changes"}
"""Everybody may send it, and what is in it is judged."""
VIEWERS = {
    "status",
    "describe_quorum",
    "list_head_keys",
    "describe_topic",
    "describe_partition",
    "plan_reassignments",
    "lose_brokers",
    "list_brokers",
    "describe_broker",
    "explain_broker",
    "describe_config",
    "list_features",
    "list_quotas",
    "resolve_quotas",
    "list_acls",
    "check_acl",
    "list_users",
    "describe_erasures",
    "describe_user",
    "list_tokens",
    "list_access_tokens",
    "list_join_tokens",
    "list_revocations",
    "describe_bridge",
    "export",
    "list_sessions",
    "coordination_limits",
}
OPERATORS = {
    "create_topics",
    "delete_topics",
    "delete_topic",
    "create_partitions",
    "alter_reassignments",
    "elect_leaders",
    "unregister_broker",
    "alter_configs",
    "alter_config",
    "alter_quotas",
}
ADMINS = {
    "list_segments",
    "read_segment",
    "read_log",
    "list_pseudonyms",
    "make_proof",
    "watch_resource",
    "update_features",
    "create_acls",
    "delete_acls",
    "alter_scram",
    "create_access_token",
    "rotate_access_token",
    "revoke_access_token",
    "create_join_token",
    "revoke_join_token",
    "revoke_certificates",
    "reinstate_certificates",
    "erase_subject",
    "change_voters",
    "change_head_key",
    "transfer_leadership",
    "run_archive",
    "unregister_controller",
    "follow_source",
    "set_bridge_mode",
    "import_records",
    "keep_import_part",
    "apply",
    "open_session",
    "renew_session",
    "end_session",
    "enter",
    "change_entry",
    "leave",
    "break_grant",
    "list_entries",
    "get_key",
    "list_keys",
    "commit_keys",
    "watch_coordination",
}
FOR_BROKERS = {"list_snapshots", "read_subject_keys"}
"""Every broker gets them with its own credentials, and so do administrators."""
THE_BROKER = {
    "metadata_fetch",
    "alter_partition",
    "assign_replicas",
    "allocate_producer_ids",
    "read_snapshot",
}
"""Only the broker that the request is of, by its own credentials."""

OF_ROLE = {
    "nobody": ANYBODY | A_LETTER | WHOEVER_IS_KNOWN | LISTS,
    "viewer": ANYBODY | A_LETTER | WHOEVER_IS_KNOWN | LISTS | VIEWERS,
    "operator": ANYBODY | A_LETTER | WHOEVER_IS_KNOWN | LISTS | VIEWERS | OPERATORS,
    "admin": {route.name for route in ROUTES} - THE_BROKER,
    "root": {route.name for route in ROUTES} - THE_BROKER,
}
"""`root` is a super user."""
METHODS = ("token", "certificate", "unix-socket")
LEADER, STANDBY = 1, 2
ONLY_THE_LEADER = {
    "make_changes",
    "alter_partition",
    "assign_replicas",
    "renew_session",
    "keep_import_part",
    "transfer_leadership",
}
"""Beside changes, and beside reads of the newest state."""


class Way(NamedTuple):
    """Which node is asked, and how new its answer must be."""

    node: int
    query: Mapping[str, str] = MappingProxyType({})

    def __str__(self) -> str:
        return f"{'leader' if self.node == LEADER else 'standby'} {dict(self.query)}"

    def ends_at_the_leader(self, route: Route) -> bool:
        """Whether only the leader may answer."""
        if route.changes or route.name in ONLY_THE_LEADER:
            return True
        if route.name == "metadata_fetch":
            return True  # From whoever is no broker in service.
        takes = {parameter.name for parameter in route.parameters}
        return {"consistency", "minOffset"} <= takes and not self.query


WAYS = [
    Way(node, MappingProxyType(query))
    for node in (LEADER, STANDBY)
    for query in ({}, {"consistency": "stale"}, {"minOffset": "0"})
]


class Cell(NamedTuple):
    """Who asks, and what it may."""

    caller: Caller
    allowed: frozenset[str]
    headers: Mapping[str, str] = MappingProxyType({})

    def allowed_by(self, way: Way) -> frozenset[str]:
        """Return what it may ask of a node."""
        # The leader notes the contact of the broker, so nobody else may ask it for a piece.
        is_log = way.node == STANDBY and self.allowed >= ADMINS
        return self.allowed | {"read_snapshot"} if is_log else self.allowed

    def __str__(self) -> str:
        return f"{self.caller.principal} by {self.caller.method} {dict(self.headers)}"


def cells() -> list[Cell]:
    found = [
        Cell(Caller(), frozenset(ANYBODY | A_LETTER)),
        Cell(Caller("Controller:1", "certificate", "10.0.0.1"), frozenset(OF_ROLE["nobody"])),
        Cell(
            Caller(f"Broker:{BROKER}", "certificate", "10.0.0.7"),
            frozenset(OF_ROLE["nobody"] | THE_BROKER | FOR_BROKERS),
        ),
        Cell(
            Caller("Broker:8", "certificate", "10.0.0.8"),
            frozenset(OF_ROLE["nobody"] | FOR_BROKERS),
        ),
    ]
    for role, allowed in OF_ROLE.items():
        user = f"User:{role}"
        for method in METHODS:
            address = "" if method == "unix-socket" else "10.0.0.9"
            found.append(Cell(Caller(user, method, address), frozenset(allowed)))
        claim = {"x-logberg-on-behalf-of": user}
        for broker_id in (8, 7):
            # Broker 8 may ask for users, and broker 7 may not.
            caller = Caller(f"Broker:{broker_id}", "certificate", f"10.0.0.{broker_id}")
            may = allowed if broker_id == 8 else ANYBODY
            found.append(Cell(caller, frozenset(may), claim))
        other = Caller("User:other", "token", "10.0.0.9")
        found.append(Cell(other, frozenset(ANYBODY), claim))
    return found


OF_BROKER = Caller(f"Broker:{BROKER}", "certificate", "10.0.0.7")


@pytest.fixture(scope="module")
def cluster() -> Any:
    made: Any = Cluster(
        nodes=2,
        standbys_take_heartbeats=True,
        authorization="on",
        super_users=frozenset({"User:root"}),
        delegations={8: frozenset({"User:*"})},
        head_seed=lambda node: bytes((node,)) * 32,
        head_interval_s=0.25,
    )
    broker = made.matrix_broker = Broker(made, BROKER)
    for wanted in (WantedState.FENCED, WantedState.ONLINE, WantedState.ONLINE):
        replies = broker.send(wanted, caller=OF_BROKER)
        made.run_until(lambda got=replies: bool(got))
        broker.take(replies[0])
        made.run(0.1)
    granted(made)
    topic = {"name": "t", "assignments": [{"partitionIndex": 0, "brokerIds": [BROKER]}]}
    status, reply = made.ask("POST", "/v1/topics", {"topics": [topic]}, caller=ROOT)
    assert status == 200, reply
    made.run_until(lambda: made.ask("GET", "/checkpoint", caller=ROOT)[0] == 200)
    for node in (LEADER, STANDBY):
        made.processes[node].run(made.controllers[node].write_checkpoint)
    made.run(0.5)
    return made


def all_answers(
    cluster: Any, requests: list[Request], node: int = LEADER
) -> list[tuple[int, str, str]]:
    """Send all requests to a node, and return status, code and message of each answer."""
    handle = cluster.controllers[node].handle
    replies: list[Any] = [None] * len(requests)
    for place, request in enumerate(requests):

        def take(reply: Any, place: int = place) -> None:
            assert replies[place] is None, "answered twice"
            replies[place] = whole(reply)

        cluster.processes[node].run(lambda r=request, t=take: handle(r, t))
    cluster.run_until(lambda: all(reply is not None for reply in replies))
    return [read(reply) for reply in replies]


def read(reply: Any) -> tuple[int, str, str]:
    content_type = reply.headers.get("content-type", "")
    if content_type.startswith(MSGPACK):
        error = decode_fetch_reply(reply.status, reply.body, MSGPACK).error
        return (200, "", "") if error is None else (reply.status, error.code, error.message)
    is_error = reply.status >= 400 and content_type.startswith("application/json")
    body = json.loads(reply.body) if is_error else {}
    return reply.status, body.get("code", ""), body.get("message", body.get("reason", ""))


NO_REQUEST = ("MALFORMED_BODY", "NOT_FOUND", "METHOD_NOT_ALLOWED", "UNSUPPORTED_MEDIA_TYPE")
REFUSED = ("CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")


def test_every_route_has_an_entry_and_every_entry_a_route():
    assert {route.name for route in ROUTES} == set(ROUTE_ACCESS)


def test_every_route_stands_in_one_of_the_lists():
    lists = (
        ANYBODY,
        WHOEVER_IS_KNOWN,
        LISTS,
        A_LETTER,
        VIEWERS,
        OPERATORS,
        ADMINS,
        FOR_BROKERS,
        THE_BROKER,
    )
    assert sum(map(len, lists)) == len(ROUTES)
    assert set().union(*lists) == {route.name for route in ROUTES}


def requests_of(cluster: Any, cell: Cell, way: Way) -> list[Request]:
    """Return one request for each route."""
    found = []
    for route in ROUTES:
        request = request_of(cluster, cluster.matrix_broker, route, cell.caller)
        query, headers = {**request.query, **way.query}, {**request.headers, **cell.headers}
        found.append(
            Request(request.method, request.path, request.body, query, headers, request.caller)
        )
    return found


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("cell", cells(), ids=str)
def test_every_route_answers_and_refuses_as_the_lists_say(cluster, cell, way):
    answers = all_answers(cluster, requests_of(cluster, cell, way), way.node)
    allowed, wrong = cell.allowed_by(way), []
    for route, (status, code, message) in zip(ROUTES, answers, strict=True):
        refused = status == 403 and code in REFUSED
        sent_on = way.node == STANDBY and way.ends_at_the_leader(route)
        if refused:
            assert message, f"{route.name} says nothing"
        if sent_on and code == "NOT_CONTROLLER":
            continue
        if refused == (route.name in allowed):
            wrong.append(f"{route.name}: {status} {code} {message}")
        elif not refused:
            assert code not in NO_REQUEST, f"{route.name} is no request: {message}"
    assert not wrong, f"{cell}, {way}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_a_change_among_others_is_judged_as_if_it_had_come_alone(cluster, cell):
    routes = [route for route in ROUTES if may_be_joined(route)]
    changes = []
    for route in routes:
        alone = request_of(cluster, cluster.matrix_broker, route, cell.caller)
        query = "&".join(f"{name}={value}" for name, value in alone.query.items())
        changes.append(
            {"method": alone.method, "path": f"{alone.path}?{query}" if query else alone.path}
            | ({"body": json.loads(alone.body)} if alone.body else {})
        )
    body = json.dumps({"changes": changes}).encode()
    replies: list[Any] = []
    request = Request("POST", "/v1/changes", body, {}, dict(cell.headers), cell.caller)
    cluster.processes[1].run(
        lambda: cluster.leader.handle(request, lambda r: replies.append(whole(r)))
    )
    cluster.run_until(lambda: bool(replies))
    if replies[0].status == 403:
        assert not cell.allowed - ANYBODY, "the claim to ask for somebody is refused as a whole"
        return
    outcomes = json.loads(replies[0].body)["outcomes"]
    wrong = [
        f"{route.name}: {outcome['status']} {outcome['body']}"
        for route, outcome in zip(routes, outcomes, strict=True)
        if (outcome["status"] == 403 and outcome["body"].get("code") in REFUSED)
        == (route.name in cell.allowed)
    ]
    assert not wrong, f"{cell}:\n" + "\n".join(wrong)


def test_a_route_without_an_entry_is_refused(cluster, monkeypatch):
    left = {name: access for name, access in ROUTE_ACCESS.items() if name != "list_topics"}
    monkeypatch.setattr("controller.access.guard.ROUTE_ACCESS", left)
    status, reply = cluster.ask("GET", "/v1/topics", caller=Caller("User:admin", "token"))
    assert status == 403
    assert "declares none" in reply["message"]
    assert cluster.ask("GET", "/v1/brokers", caller=ROOT)[0] == 200
