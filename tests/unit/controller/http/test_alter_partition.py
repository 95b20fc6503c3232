"""AlterPartition over HTTP: who may ask, how often at once, and in which formats."""

import json
from typing import Any

import msgspec
import pytest

from metadata.messages import AlterPartitionReply
from metadata.messages.wire import MSGPACK
from metadata.uuids import uuid_text
from runtime.http.requests import ANONYMOUS, Caller
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

PATH = "/v1/partitions/alter"
OWN = Caller("Broker:1", "certificate", "10.0.0.1")


def made(**config):
    cluster: Any = Cluster(nodes=1, **config)
    cluster.brokers = {b.broker_id: b for b in cluster.online(1, 2)}
    cluster.assign("t", (1, 2))
    return cluster


def body(cluster, **changes):
    wanted = {
        "partitionIndex": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "newIsrWithEpochs": [{"brokerId": 1}],
    }
    return {
        "clusterId": CLUSTER_ID,
        "brokerId": 1,
        "brokerEpoch": cluster.brokers[1].epoch,
        "topics": [{"topicName": "t", "partitions": [wanted]}],
    } | changes


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (OWN, 200),
        (Caller("Broker:2", "certificate", "10.0.0.2"), 403),
        (Caller("User:alice", "token", "10.0.0.7"), 200),
        (ANONYMOUS, 200),
    ],
)
def test_only_a_brokers_own_credential_speaks_for_it_where_brokers_have_one(caller, status):
    cluster = made()
    found, reply = cluster.ask("POST", PATH, body(cluster), caller=caller)
    assert found == status, reply
    if status == 403:
        assert reply["code"] == "CLUSTER_AUTHORIZATION_FAILED"
        assert cluster.partition("t").isr == (1, 2)
        return
    batch = cluster.batches()[-1]
    assert batch.header.provenance.principal == caller.principal
    assert batch.header.acted_as == ("" if caller is OWN else "Broker:1")


def test_with_authentication_users_do_not_speak_for_brokers():
    cluster = made()
    cluster.leader._http.altering._identity._require_authentication = True
    for caller in (Caller("User:alice", "token", "10.0.0.7"), ANONYMOUS):
        status, reply = cluster.ask("POST", PATH, body(cluster), caller=caller)
        assert (status, reply["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
    assert cluster.ask("POST", PATH, body(cluster), caller=OWN)[0] == 200


def test_a_broker_of_another_cluster_or_process_is_refused():
    cluster = made()
    status, reply = cluster.ask("POST", PATH, body(cluster, clusterId="another"))
    assert (status, reply["code"]) == (409, "INCONSISTENT_CLUSTER_ID")
    other = uuid_text(b"x" * 16)
    status, reply = cluster.ask("POST", PATH, body(cluster, incarnationId=other))
    assert (status, reply["code"]) == (409, "STALE_BROKER_EPOCH")
    mine = uuid_text(cluster.brokers[1].incarnation)
    assert cluster.ask("POST", PATH, body(cluster, incarnationId=mine))[0] == 200


def test_one_request_of_a_broker_is_under_way_at_a_time():
    cluster = made()
    cluster.hold_the_turn()
    first = cluster.send("POST", PATH, body(cluster))
    second = cluster.send("POST", PATH, body(cluster))
    assert not first
    assert second[0].status == 429
    assert json.loads(second[0].body)["retryAfterMs"] > 0
    cluster.run_until(lambda: bool(first))
    assert first[0].status == 200
    assert cluster.ask("POST", PATH, body(cluster))[0] == 200


def test_it_goes_before_the_requests_of_users():
    cluster = made()
    cluster.hold_the_turn()
    topic = {"name": "u", "numPartitions": 1, "replicationFactor": 1}
    users = cluster.send("POST", "/v1/topics", {"topics": [topic]})
    leaders = cluster.send("POST", PATH, body(cluster))
    cluster.run_until(lambda: bool(users) and bool(leaders))
    operations = [b.header.provenance.operation for b in cluster.batches()]
    assert operations[-2:] == ["AlterPartition", "CreateTopics"]


def test_a_standby_names_the_leader():
    cluster: Any = Cluster(nodes=3)
    cluster.brokers = {b.broker_id: b for b in cluster.online(1, 2)}
    status, reply = cluster.ask("POST", PATH, body(cluster), node=2)
    assert (status, reply["code"], reply["leaderId"]) == (421, "NOT_CONTROLLER", 1)


def test_messagepack_in_and_out():
    cluster = made()
    encoded = msgspec.msgpack.encode(body(cluster))
    headers = {"content-type": MSGPACK, "accept": MSGPACK}
    replies = cluster.send("POST", PATH, encoded, headers=headers)
    cluster.run_until(lambda: bool(replies))
    reply = msgspec.msgpack.decode(replies[0].body, type=AlterPartitionReply)
    assert reply.topics[0].partitions[0].isr == (1,)
    assert reply.topics[0].partitions[0].partition_epoch == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"topics": []}, "topics"),
        ({"brokerId": -1}, "brokerId"),
        ({"isrs": []}, "isrs"),
    ],
)
def test_a_bad_body_is_refused_and_the_field_named(change, named):
    cluster = made()
    status, reply = cluster.ask("POST", PATH, body(cluster, **change))
    assert status == 400
    assert named in reply["message"]


def test_too_many_partitions_in_one_request():
    cluster = made()
    row = body(cluster)["topics"][0]["partitions"][0]
    topics = [{"topicName": f"t{n}", "partitions": [row] * 600} for n in range(2)]
    status, reply = cluster.ask("POST", PATH, body(cluster, topics=topics))
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert "1200" in reply["message"]
