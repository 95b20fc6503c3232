"""Answers that leave after the right to ask is gone, of every route, whatever answers it.

What answers the routes is replaced: it keeps each request, and answers it once the right is gone.
So the test holds for routes that wait, for routes that don't, and for those that are still to come.
"""

from typing import Any

import pytest

from controller.http.call import Call
from controller.http.route import Route
from controller.http.routes import ROUTES
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import WantedState
from metadata.records import AclOperation, AclPermissionType, AclResourceType
from runtime.http.requests import Caller, Reply, Request, whole
from tests.unit.controller.access.requests import BROKER, ROOT, granted, request_of
from tests.unit.controller.access.test_guard import entry
from tests.unit.controller.access.test_matrix import (
    A_LETTER,
    ANYBODY,
    FOR_BROKERS,
    LEADER,
    LISTS,
    STANDBY,
    THE_BROKER,
    WAYS,
    WHOEVER_IS_KNOWN,
    Way,
)
from tests.unit.controller.cluster import Broker, Cluster

pytestmark = pytest.mark.simulation

ADMIN = Caller("User:admin", "token", "10.0.0.9")
OF_BROKER = Caller(f"Broker:{BROKER}", "certificate", "10.0.0.7")
SECRET = b"what only who may ask learns"
WITHOUT_RIGHTS = ANYBODY | A_LETTER | WHOEVER_IS_KNOWN | LISTS
"""No entry decides who gets these, or what such a list shows is chosen when it is read."""
DONE = {"alter_partition", "assign_replicas", "transfer_leadership"}
"""Beside changes: they are judged when they are decided. Then the answer tells what was done."""


class Kept:
    """Keeps the requests of everybody but the super user, in place of what answers them."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers
        self.calls: dict[str, Call] = {}

    def answer(self, route: Route, call: Call) -> None:
        if call.request.caller == ROOT:
            self._answers.answer(route, call)
        else:
            self.calls[route.name] = call


def made() -> Any:
    cluster: Any = Cluster(
        nodes=2,
        standbys_take_heartbeats=True,
        authorization="on",
        super_users=frozenset({ROOT.principal}),
    )
    broker = cluster.matrix_broker = Broker(cluster, BROKER)
    replies = broker.send(WantedState.FENCED, caller=OF_BROKER)
    cluster.run_until(lambda: bool(replies))
    broker.take(replies[0])
    granted(cluster)
    cluster.run(0.5)
    return cluster


def kept_requests(
    cluster: Any, caller: Caller, routes: list[Route], way: Way
) -> tuple[Kept, dict[str, Reply]]:
    """Send a request for each route; return what keeps them, and where their answers go."""
    controller = cluster.controllers[way.node]
    api = controller._http.api
    kept = api._answers = Kept(api._answers)
    replies: dict[str, Reply] = {}
    for route in routes:
        asked = request_of(cluster, cluster.matrix_broker, route, caller)
        query = {**asked.query, **way.query}
        request = Request(asked.method, asked.path, asked.body, query, asked.headers, caller)

        def take(reply: Reply, name: str = route.name) -> None:
            assert name not in replies, "answered twice"
            replies[name] = whole(reply)

        cluster.processes[way.node].run(lambda r=request, t=take: controller.handle(r, t))
    cluster.run(0.2)
    return kept, replies


def answered(cluster: Any, kept: Kept, way: Way, *, as_error: bool) -> None:
    """Answer the requests that are kept."""

    def answer(call: Call) -> None:
        if as_error:
            call.refuse(LogbergError(ErrorCode.RESOURCE_NOT_FOUND, SECRET.decode()))
        else:
            call.on_reply(Reply(200, SECRET))

    for call in kept.calls.values():
        cluster.processes[way.node].run(lambda call=call: answer(call))


def take_away(cluster: Any, caller: Caller) -> None:
    """Take all rights from a caller, and let each controller apply that."""
    if caller is OF_BROKER:
        cluster.write(
            entry(
                AclOperation.CLUSTER_ACTION,
                "kafka-cluster",
                AclResourceType.CLUSTER,
                caller.principal,
                AclPermissionType.DENY,
            )
        )
    else:
        filters = {"filters": [{"principal": caller.principal}]}
        status, reply = cluster.ask("DELETE", "/v1/acls", filters, caller=ROOT)
        assert status == 200, reply
    cluster.run(0.5)


@pytest.mark.parametrize("as_error", [False, True])
@pytest.mark.parametrize("caller", [ADMIN, OF_BROKER], ids=lambda caller: caller.principal)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_answer_tells_anything_once_the_right_is_gone(
    way: Way, caller: Caller, as_error: bool
) -> None:
    cluster = made()
    names = THE_BROKER | FOR_BROKERS
    if caller is ADMIN:
        names = {route.name for route in ROUTES} - WITHOUT_RIGHTS
    routes = [route for route in ROUTES if route.name in names]
    kept, replies = kept_requests(cluster, caller, routes, way)
    assert kept.calls.keys() == names, "each was allowed, or is the leader's to judge"
    take_away(cluster, caller)
    answered(cluster, kept, way, as_error=as_error)
    done = {route.name for route in routes if route.changes or route.name in DONE}
    told = {name for name, reply in replies.items() if SECRET in reply.body}
    assert told == (done if way.node == LEADER else set())
    expected = {403} if way.node == LEADER else {403, 421}
    assert {reply.status for name, reply in replies.items() if name not in told} <= expected
    assert replies.keys() == names


@pytest.mark.parametrize("way", [way for way in WAYS if way.node == STANDBY], ids=str)
def test_a_standby_tells_nothing_to_who_never_had_the_right(way: Way) -> None:
    """What only the leader judges is not judged here first. Then its answer is."""
    cluster = made()
    routes = [route for route in ROUTES if route.name not in WITHOUT_RIGHTS]
    nobody = Caller("User:nobody", "token", "10.0.0.9")
    kept, replies = kept_requests(cluster, nobody, routes, way)
    for name in kept.calls:
        route = next(route for route in ROUTES if route.name == name)
        assert way.ends_at_the_leader(route), name
    answered(cluster, kept, way, as_error=False)
    assert {name for name, reply in replies.items() if SECRET in reply.body} == set()
    assert {reply.status for reply in replies.values()} == {403, 421}
    assert replies.keys() == {route.name for route in routes}
