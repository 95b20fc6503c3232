"""Reads, watches and other routes: who may answer, and the errors of wrong requests."""

import json

import msgspec
import pytest

from controller.http.routes import ROUTES
from metadata.features import SUPPORTED
from metadata.uuids import uuid_text
from runtime.http.requests import Request
from tests.unit.controller.cluster import SESSION_S, Broker, Cluster


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.online(1, 2, rack="r")
    cluster.create_topic("b", partitions=2, factor=2)
    cluster.create_topic("a", partitions=1, factor=1)
    cluster.run(0.1)
    return cluster


def test_lists_are_in_order_and_say_their_offset(cluster):
    status, reply = cluster.ask("GET", "/v1/topics")
    assert status == 200
    assert [(t["name"], t["partitionCount"]) for t in reply["topics"]] == [("a", 1), ("b", 2)]
    assert reply["offset"] == cluster.image.offset
    assert reply["ageMs"] == 0
    status, reply = cluster.ask("GET", "/v1/topics", query={"limit": "1"})
    assert reply["nextAfter"] == "a"
    status, reply = cluster.ask("GET", "/v1/topics", query={"after": "a"})
    assert [t["name"] for t in reply["topics"]] == ["b"]
    assert reply["nextAfter"] is None


def test_a_topic_and_a_broker_described(cluster):
    status, reply = cluster.ask("GET", "/v1/topics/b")
    assert status == 200
    partitions = reply["topics"][0]["partitions"]
    assert sorted(p["leader"] for p in partitions) == [1, 2]
    assert cluster.ask("GET", "/v1/topics/zzz")[1]["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
    status, reply = cluster.ask("GET", "/v1/brokers/1")
    broker = reply["broker"]
    assert (broker["state"], broker["rack"], broker["replicas"]) == (
        "online",
        "r",
        2 + (1 in cluster.partition("a").replicas),
    )
    assert broker["endpoints"][0]["securityProtocol"] == "PLAINTEXT"
    assert broker["lastContactMs"] is not None
    assert cluster.ask("GET", "/v1/brokers/9")[0] == 404
    assert cluster.ask("GET", "/v1/brokers/x")[1]["code"] == "INVALID_REQUEST"


def test_states_of_brokers(cluster):
    Broker(cluster, 3).register()
    states = {b["brokerId"]: b["state"] for b in cluster.ask("GET", "/v1/brokers")[1]["brokers"]}
    assert states == {1: "online", 2: "online", 3: "fenced"}
    cluster.run(SESSION_S + 1)
    states = {b["brokerId"]: b["state"] for b in cluster.ask("GET", "/v1/brokers")[1]["brokers"]}
    assert states == {1: "offline", 2: "offline", 3: "offline"}


def test_a_linearizable_read_is_the_leaders_and_needs_a_majority(cluster):
    status, reply = cluster.ask("GET", "/v1/topics", node=2)
    assert (status, reply["code"], reply["leaderId"]) == (421, "NOT_CONTROLLER", 1)
    cluster.shared.cut(1)
    cluster.lead(2)
    status, reply = cluster.ask("GET", "/v1/topics", node=1)
    assert status == 503


def test_many_reads_share_one_confirmation(cluster):
    quorum, asked = cluster.shared.nodes[1], []
    read_index = quorum.read_index
    reads = cluster.leader._replica.reads
    reads._read_index = lambda on_ready: (asked.append(1), read_index(on_ready))
    replies = [cluster.send("GET", "/v1/topics") for _ in range(40)]
    cluster.run_until(lambda: all(replies))
    assert len(asked) == 2  # the first asks; all others share the next


def test_stale_reads_and_reads_of_ones_own_writes_are_answered_by_any_node(cluster):
    status, reply = cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})
    assert status == 200
    assert reply["offset"] == cluster.image.offset
    assert reply["ageMs"] >= 0
    written = cluster.create_topic("c", factor=1)["offset"]
    status, reply = cluster.ask("GET", "/v1/topics", node=3, query={"minOffset": str(written)})
    assert status == 200
    assert [t["name"] for t in reply["topics"]] == ["a", "b", "c"]


def test_an_offset_that_does_not_come_is_not_waited_for_without_end(cluster):
    query = {"minOffset": str(cluster.image.offset + 1)}
    replies = cluster.send("GET", "/v1/topics", node=3, query=query)
    cluster.run(4.9)
    assert not replies
    cluster.run(0.2)
    assert replies[0].status == 503
    assert json.loads(replies[0].body)["code"] == "OFFSET_NOT_AVAILABLE"


def test_the_leader_says_at_once_that_an_offset_is_beyond_the_end(cluster):
    end = cluster.image.offset
    status, reply = cluster.ask("GET", "/v1/topics", query={"minOffset": str(end)})
    assert status == 200
    began = cluster.world.now
    status, reply = cluster.ask("GET", "/v1/topics", query={"minOffset": str(end + 1)})
    assert (status, reply["code"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert str(end) in reply["message"]
    assert cluster.world.now - began < 1.0


def test_a_leader_waits_for_a_change_that_is_proposed(cluster):
    """Its caller may have been told the offset by another reader of the same answer."""
    end = cluster.image.offset
    change = cluster.send(
        "POST", "/v1/topics", {"topics": [{"name": "new", "replicationFactor": 1}]}
    )
    assert not change
    status, reply = cluster.ask("GET", "/v1/topics", query={"minOffset": str(end + 1)})
    assert status == 200
    assert reply["offset"] > end


def test_a_cut_off_standby_answers_stale_reads_with_a_growing_age(cluster):
    cluster.shared.cut(3)
    cluster.create_topic("unseen", factor=1)
    cluster.run(20.0)
    _, reply = cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})
    assert [t["name"] for t in reply["topics"]] == ["a", "b"]
    assert reply["ageMs"] >= 19_000


@pytest.mark.parametrize(
    "query",
    [{"consistency": "maybe"}, {"minOffset": "-1"}, {"minOffset": "x"}, {"limit": "0"}],
)
def test_wrong_queries(cluster, query):
    status, reply = cluster.ask("GET", "/v1/topics", query=query)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


# -- the log -----------------------------------------------------------------------------------


def test_the_log_is_read_as_it_stands_and_watched(cluster):
    status, reply = cluster.ask("GET", "/v1/log", node=2)
    assert status == 200
    assert (reply["offset"], reply["nextOffset"]) == (0, cluster.image.offset)
    at = str(reply["nextOffset"])
    replies = cluster.send("GET", "/v1/log", query={"offset": at, "waitMs": "5000"})
    cluster.run(1.0)
    assert not replies
    cluster.create_topic("c", factor=1)
    assert len(json.loads(replies[0].body)["batches"]) == 1
    replies = cluster.send(
        "GET", "/v1/log", query={"offset": str(cluster.image.offset), "waitMs": "500"}
    )
    cluster.run(0.6)
    assert json.loads(replies[0].body)["batches"] == []


def test_the_log_in_words(cluster):
    status, reply = cluster.ask("GET", "/v1/log", query={"format": "json"})
    assert status == 200
    words = [b for b in reply["batches"] if b.get("operation") == "CreateTopics"]
    assert words[0]["principal"] == "User:alice"
    assert words[0]["records"][0]["type"] == "TOPIC_RECORD"


def test_an_offset_beyond_the_end_is_out_of_range(cluster):
    status, reply = cluster.ask("GET", "/v1/log", query={"offset": "100000"})
    assert (status, reply["code"]) == (416, "OFFSET_OUT_OF_RANGE")


# -- status and health ----------------------------------------------------------------------------


def test_status_quorum_and_health(cluster):
    status, reply = cluster.ask("GET", "/v1/status")
    assert (reply["active"], reply["leaderId"], reply["topics"]) == (True, 1, 2)
    assert reply["brokers"] == {"offline": 0, "fenced": 0, "online": 2, "stopping": 0}
    hashes = {cluster.ask("GET", "/v1/status", node=n)[1]["stateHash"] for n in (1, 2, 3)}
    assert len(hashes) == 1
    status, reply = cluster.ask("GET", "/v1/quorum", node=2)
    assert (reply["role"], reply["leaderId"], len(reply["members"])) == ("follower", 1, 3)
    assert cluster.ask("GET", "/health/live")[0] == 200
    assert cluster.ask("GET", "/health/ready", node=3)[0] == 200
    cluster.kill(1)
    cluster.shared.nodes[3].learn()
    status, reply = cluster.ask("GET", "/health/ready", node=3)
    assert status == 503
    assert "no leader" in reply["reason"]


def test_metrics_show_what_is_and_count_what_was_asked(cluster):
    cluster.ask("GET", "/v1/topics/zzz")
    status, body = cluster.ask("GET", "/metrics")
    text = body.decode()
    assert status == 200
    assert 'logberg_brokers{state="online"} 2' in text
    assert f"logberg_image_offset {cluster.image.offset}" in text
    assert "logberg_controller_active 1" in text
    assert 'logberg_controller_requests_total{operation="describe_topic",status="404"} 1' in text
    assert "logberg_controller_active 0" in cluster.ask("GET", "/metrics", node=2)[1].decode()


def test_the_openapi_document_names_every_path(cluster):
    status, document = cluster.ask("GET", "/v1/openapi.json")
    assert status == 200
    assert set(document["paths"]) == {route.path for route in ROUTES}
    assert "MetadataFetchRequest" in document["components"]["schemas"]


# -- wrong requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("GET", "/v1/topics/", 404, "NOT_FOUND"),
        ("PUT", "/v1/topics", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/brokers/1", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_wrong_paths_and_methods(cluster, method, path, status, code):
    answered, reply = cluster.ask(method, path, {})
    assert (answered, reply["code"]) == (status, code)


@pytest.mark.parametrize("method", ["PUT", "TRACE", "OPTIONS", "HEAD", "QUERY", "PROPFIND"])
def test_a_wrong_method_is_told_the_right_ones(cluster, method):
    replies = cluster.send(method, "/v1/topics")
    assert replies[0].headers["allow"] == "POST, GET, DELETE"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (b"", "application/json", 400, "MALFORMED_BODY"),
        (b"{", "application/json", 400, "MALFORMED_BODY"),
        (b"{}", "application/json", 400, "INVALID_REQUEST"),
        (b'{"topics": [{"name": "x"}], "what": 1}', "", 400, "INVALID_REQUEST"),
        (b'{"topics": [{"name": 7}]}', "", 400, "INVALID_REQUEST"),
        (b"\xc1", "application/msgpack", 400, "MALFORMED_BODY"),
        (b"<x/>", "text/xml", 415, "UNSUPPORTED_MEDIA_TYPE"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/topics", "/v1/metadata/fetch"])
def test_wrong_bodies(cluster, body, content_type, status, code, path):
    replies = cluster.send("POST", path, body, headers={"content-type": content_type})
    decode = msgspec.msgpack.decode if "msgpack" in content_type else msgspec.json.decode
    assert (replies[0].status, decode(replies[0].body)["code"]) == (status, code)


def test_metadata_fetch_works_in_json_with_curl(cluster):
    body = {
        "clusterId": "a-test-cluster",
        "brokerId": 7,
        "incarnationId": uuid_text(b"i" * 16),
        "registration": {
            "endpoints": [{"name": "P", "host": "h", "port": 1}],
            "features": [
                {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
                for name, (low, high) in SUPPORTED.items()
            ],
        },
    }
    status, reply = cluster.ask("POST", "/v1/metadata/fetch", body)
    assert status == 200
    assert reply["brokerEpoch"] == cluster.broker(7).broker_epoch
    assert reply["batches"]


def test_names_in_paths_are_unquoted(cluster):
    replies = []
    request = Request("GET", "/v1/topics/%61")
    cluster.processes[1].run(lambda: cluster.leader.handle(request, replies.append))
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 200


def test_stale_reads_that_come_together_ask_the_quorum_once_how_fresh_the_image_is(cluster):
    quorum, asked = cluster.shared.nodes[1], []
    current_at = quorum.current_at
    quorum.current_at = lambda: (asked.append(1), current_at())[1]
    replies = [cluster.send("GET", "/v1/topics", query={"consistency": "stale"}) for _ in range(40)]
    cluster.run_until(lambda: all(replies))
    assert len(asked) <= 2
