"""Requests that wait are judged by the entries of the moment when they are answered."""

from typing import Any

import msgspec
import pytest

from controller.http.slow_requests import HELD
from metadata.messages import WantedState
from metadata.messages.wire import MSGPACK, decode_fetch_reply
from metadata.records import (
    AclOperation,
    AclPermissionType,
    AclResourceType,
    NoOpRecord,
    RemoveAccessControlEntryRecord,
)
from runtime.http.requests import Caller, Request
from tests.unit.controller.access.test_guard import ALICE, OF_BROKER, entry, made

pytestmark = pytest.mark.simulation

LEADER, STANDBY = 1, 2
CLUSTER = AclResourceType.CLUSTER
READS_LOG = entry(AclOperation.READ, "audit", CLUSTER, number=1)
READS_KEY = entry(AclOperation.READ, "coordination:key:k", CLUSTER, number=2)
DESCRIBES = entry(AclOperation.DESCRIBE, number=3)
RIGHTS = (READS_LOG, READS_KEY, DESCRIBES)
BROKER_DENIED = entry(
    AclOperation.CLUSTER_ACTION,
    "kafka-cluster",
    CLUSTER,
    principal="Broker:1",
    permission=AclPermissionType.DENY,
    number=4,
)


def requests(cluster: Any) -> dict[str, Request]:
    """Return a request of each kind that waits for news, by the name of its route."""
    offset = cluster.image.offset
    fetch = cluster.broker_1.request(
        WantedState.ONLINE, max_wait_ms=5_000, fetched_offset=offset, applied_offset=offset
    )
    watch = {"scopes": [{"key": "k", "after": offset}], "waitMs": 5_000}
    log = {"offset": str(offset), "waitMs": "5000", "format": "json"}
    resource = {"resource": "topic:orders", "from": str(offset), "waitMs": "5000"}
    return {
        "metadata_fetch": Request(
            "POST",
            "/v1/metadata/fetch",
            msgspec.msgpack.encode(fetch),
            {},
            {"content-type": MSGPACK},
            OF_BROKER,
        ),
        "read_log": Request("GET", "/v1/log", query=log, caller=ALICE),
        "watch_resource": Request("GET", "/v1/watch", query=resource, caller=ALICE),
        "watch_coordination": Request(
            "POST", "/v1/coordination/watch", msgspec.json.encode(watch), caller=ALICE
        ),
    }


def test_every_route_that_waits_is_tried():
    assert requests(waiting_cluster()).keys() == HELD


def waiting_cluster() -> Any:
    cluster = made(standbys_take_heartbeats=True)
    cluster.write(*RIGHTS)
    cluster.run(0.5)
    return cluster


@pytest.mark.parametrize("news", [False, True])
@pytest.mark.parametrize("node", [LEADER, STANDBY])
@pytest.mark.parametrize("name", sorted(HELD))
def test_a_request_that_waited_is_refused_once_its_right_is_gone(name, node, news):
    cluster = waiting_cluster()
    request, replies = requests(cluster)[name], []
    controller = cluster.controllers[node]
    cluster.processes[node].run(lambda: controller.handle(request, replies.append))
    cluster.run(0.3)
    assert not replies
    cluster.write(BROKER_DENIED, *(RemoveAccessControlEntryRecord(right.id) for right in RIGHTS))
    if news:
        put_key_and_topic(cluster)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 403
    if name == "metadata_fetch":
        reply = decode_fetch_reply(403, replies[0].body, MSGPACK)
        assert (reply.error.code, reply.batches) == ("CLUSTER_AUTHORIZATION_FAILED", ())


def put_key_and_topic(cluster: Any) -> None:
    """Make news for each of the requests."""
    root = Caller("User:root", "token", "10.0.0.9")
    topic = {"name": "orders", "numPartitions": 1, "replicationFactor": 1}
    assert cluster.ask("POST", "/v1/topics", {"topics": [topic]}, caller=root)[0] == 200
    operations = {"operations": [{"op": "upsert", "key": "k"}]}
    assert cluster.ask("POST", "/v1/coordination/commit", operations, caller=root)[0] == 200


@pytest.mark.parametrize("exists", [False, True])
def test_a_read_that_waited_for_an_offset_is_refused_also_if_its_answer_is_an_error(exists):
    cluster = waiting_cluster()
    path = "/v1/topics/orders"
    query = {"minOffset": str(cluster.image.offset + 2)}
    waiting = cluster.send("GET", path, query=query, caller=ALICE, node=STANDBY)
    cluster.run(0.1)
    assert not waiting
    cluster.write(RemoveAccessControlEntryRecord(DESCRIBES.id))
    if exists:
        put_key_and_topic(cluster)
    cluster.write(NoOpRecord(), NoOpRecord())
    cluster.run_until(lambda: bool(waiting))
    assert waiting[0].status == 403
