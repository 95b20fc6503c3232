"""DescribeQuorum and UnregisterBroker as an agent's listener passes them on."""

import pytest

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.admin.quorum import describe_quorum
from kafka_listener.asking.asking import Asking
from kafka_listener.asking.kafka_code import KafkaCode
from metadata.uuids import uuid_text
from tests.unit.controller.cluster import Cluster
from tests.unit.kafka_listener.kafka_kit import KafkaClient

DESCRIBE_QUORUM = 55
LOG = {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}


class AgentsClient(KafkaClient):
    """Asks as an agent's listener does."""

    now_ms = 1_000_000

    def handlers_of(self, ask):
        asking = Asking(ask, self.clock, lambda _request, error: self.defects.append(error))

        def quorum(request, answer):
            describe_quorum(AdminCall(asking, request, answer), lambda: self.now_ms)

        return {DESCRIBE_QUORUM: quorum}


@pytest.fixture
def cluster():
    cluster = Cluster(nodes=3)
    cluster.online(1)
    return cluster


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_leader_and_the_voters_are_described_in_every_version(cluster, version):
    client = AgentsClient(cluster)
    said = client.ask(DESCRIBE_QUORUM, version, Topics=[LOG])
    ((partition,),) = (topic["Partitions"] for topic in said["Topics"])
    leader = cluster.shared.leader
    controller = cluster.controllers[leader]
    assert partition["ErrorCode"] == 0
    assert partition["LeaderId"] == leader
    assert partition["LeaderEpoch"] == controller.quorum.leader_and_epoch().epoch
    assert partition["HighWatermark"] == controller.ledger.log_end
    voters = {voter["ReplicaId"]: voter for voter in partition["CurrentVoters"]}
    assert voters[leader]["LogEndOffset"] == controller.ledger.log_end
    assert partition["Observers"] == []
    if version >= 1:
        assert voters[leader]["LastCaughtUpTimestamp"] == client.now_ms
    if version >= 2:
        own = controller.quorum.status()
        assert uuid_text(voters[leader]["ReplicaDirectoryId"]) == uuid_text(own.directory_id)
        assert leader in {node["NodeId"] for node in said["Nodes"]}


def test_another_log_is_not_there(cluster):
    wanted = {"TopicName": "orders", "Partitions": [{"PartitionIndex": 0}]}
    said = AgentsClient(cluster).ask(DESCRIBE_QUORUM, 2, Topics=[wanted])
    ((partition,),) = (topic["Partitions"] for topic in said["Topics"])
    assert partition["ErrorCode"] == KafkaCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_standby_does_not_describe_the_quorum(cluster):
    leader = cluster.shared.leader
    standby = next(node for node in cluster.controllers if node != leader)
    said = AgentsClient(cluster, node=standby).ask(DESCRIBE_QUORUM, 2, Topics=[LOG])
    ((partition,),) = (topic["Partitions"] for topic in said["Topics"])
    assert partition["ErrorCode"] == KafkaCode.NOT_LEADER_OR_FOLLOWER
