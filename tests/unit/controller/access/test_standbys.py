"""A standby judges what it answers, whatever the request says about how new the answer must be."""

import msgspec
import pytest

from metadata.messages import WantedState
from metadata.messages.wire import MSGPACK, decode_fetch_reply
from metadata.records import (
    AclOperation,
    AclPermissionType,
    AclResourceType,
)
from runtime.http.requests import Reply, Request
from tests.unit.controller.access.test_guard import ALICE, OF_BROKER, ROOT, create, entry, made

pytestmark = pytest.mark.simulation

STANDBY = 2
BEHIND = {"minOffset": "0"}
BROKER_DENIED = entry(
    AclOperation.CLUSTER_ACTION,
    "kafka-cluster",
    AclResourceType.CLUSTER,
    principal="Broker:1",
    permission=AclPermissionType.DENY,
)


@pytest.mark.parametrize("query", [{}, BEHIND])
def test_a_standby_judges_who_may_run_the_archive(query: dict[str, str]) -> None:
    """The route takes no `minOffset`, so that is no reason to judge it later."""
    cluster = made(archived=True)
    path = "/v1/archive/run"
    status, reply = cluster.ask("POST", path, query=query, caller=ALICE, node=STANDBY)
    assert status == 403, reply
    assert not cluster.events("archive_asked")
    assert cluster.ask("POST", path, query=query, caller=ROOT, node=STANDBY)[0] == 200


@pytest.mark.parametrize("query", [{}, BEHIND])
def test_a_standby_gives_the_log_to_no_broker_whom_an_entry_denies_it(
    query: dict[str, str],
) -> None:
    cluster = made(standbys_take_heartbeats=True)
    broker, controller = cluster.broker_1, cluster.controllers[STANDBY]
    replies: list[Reply] = []
    cluster.run(0.5)
    cluster.write(BROKER_DENIED)
    cluster.run(0.5)
    body = msgspec.msgpack.encode(broker.request(WantedState.ONLINE))
    headers = {"content-type": MSGPACK}
    request = Request("POST", "/v1/metadata/fetch", body, query, headers, OF_BROKER)
    cluster.processes[STANDBY].run(lambda: controller.handle(request, replies.append))
    cluster.run_until(lambda: bool(replies))
    reply = decode_fetch_reply(replies[0].status, replies[0].body, MSGPACK)
    assert (len(reply.batches), replies[0].status) == (0, 403)


@pytest.mark.parametrize("query", [{"consistency": "stale"}, BEHIND])
def test_a_standby_does_not_tell_whether_there_is_a_topic(query: dict[str, str]) -> None:
    cluster = made()
    assert create(cluster, caller=ROOT)[0] == 200
    cluster.run(0.5)
    answers = [
        cluster.ask("GET", f"/v1/topics/{name}", query=query, caller=ALICE, node=STANDBY)
        for name in ("orders", "none-of-this-name")
    ]
    assert [status for status, _ in answers] == [403, 403]
    assert {reply["code"] for _, reply in answers} == {"TOPIC_AUTHORIZATION_FAILED"}


def test_a_standby_that_does_not_reach_the_offset_judges_nobody() -> None:
    """Its entries may be older than the right that the caller was given."""
    cluster = made()
    query = {"minOffset": str(cluster.image.offset + 100)}
    for caller in (ALICE, ROOT):
        status, reply = cluster.ask("GET", "/v1/topics/x", query=query, caller=caller, node=STANDBY)
        assert (status, reply["code"]) == (503, "OFFSET_NOT_AVAILABLE")
    assert not cluster.events("access_refused")


def test_a_standby_refuses_nobody_what_only_the_leader_judges() -> None:
    cluster = made()
    for query in ({}, {"continuation": "no token"}, {"consistency": "newest"}):
        status, reply = cluster.ask("GET", "/v1/brokers", query=query, caller=ALICE, node=STANDBY)
        assert (status, reply["code"]) == (421, "NOT_CONTROLLER"), query
