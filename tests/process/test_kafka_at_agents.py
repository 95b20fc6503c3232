"""Kafka's protocol at agents of real processes, asked by raw frames.

Real clients ask the same in tests/kafka/clients.
"""

import ssl
from pathlib import Path

import pytest

from logberg.local.ports import KAFKA_PORT
from tests.kafka_wire import RawKafkaClient
from tests.process.combined_cluster import CombinedCluster

pytestmark = pytest.mark.process

METADATA, CREATE_TOPICS = 3, 19
_KAFKA = """
[broker.kafka]
listen = "127.0.0.1:{port}"
sasl_mechanisms = ["PLAIN"]
"""


def test_a_node_with_both_roles_answers_kafkas_clients(tmp_path: Path) -> None:
    cluster = CombinedCluster(tmp_path / "cluster", 1)
    port = cluster.local.file.port_base + KAFKA_PORT
    path = cluster.folder / "config" / "controller-1.toml"
    path.write_text(path.read_text() + _KAFKA.format(port=port))
    try:
        cluster.start()
        tls = ssl.create_default_context(cafile=cluster.local.file.ca)
        client = RawKafkaClient(port, tls)
        assert client.log_in("admin", cluster.token) == 0
        topic = {
            "Name": "orders",
            "NumPartitions": 2,
            "ReplicationFactor": 1,
            "Assignments": [],
            "Configs": [],
        }
        made = client.ask(CREATE_TOPICS, 7, Topics=[topic], timeoutMs=9_000, validateOnly=False)
        assert made["Topics"][0]["ErrorCode"] == 0, made

        def partitions() -> list[int]:
            said = client.ask(METADATA, 12, Topics=None, AllowAutoTopicCreation=False)
            assert [(b["NodeId"], b["Port"]) for b in said["Brokers"]] == [(1, port)]
            return [each["LeaderId"] for topic in said["Topics"] for each in topic["Partitions"]]

        # The agent's image has the topic a moment after the controller's answer.
        cluster.until(lambda: partitions() == [1, 1], "the agent knows the topic")
        client.close()
        assert cluster.stop_node(1) == 0
        where = str(cluster.data(1))
        said = cluster.command("audit", "who", where, "topic:orders", "--output", "json")
        assert said.code == 0, said
        assert "User:admin" in said.out
    finally:
        cluster.kill()
