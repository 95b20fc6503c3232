"""A tree that Kafka 3.9 itself wrote is followed, taken over, rolled back, and finalised.

It runs only with LOGBERG_SERVERS=1, and takes some minutes: Kafka's tools start slowly.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.tools import NoToolError
from tests.coordination.servers.tier import serving
from tests.coordination.servers.zookeeper import ZooKeeperServers
from tests.process.bridge_runs import bridge
from tests.process.legacy_kafka import LegacyKafka
from tests.process.running_cluster import running
from tests.process.test_bridge import topics, until
from tests.process.test_import import command, shown

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with serving(lambda: ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))) as servers:
        yield servers


@pytest.fixture
def kafka(servers: ZooKeeperServers, tmp_path: Path) -> Iterator[LegacyKafka]:
    """A broker with topics, configs, quotas, ACLs and SCRAM users that its own tools made."""
    try:
        kafka = LegacyKafka(tmp_path / "kafka", 0, f"{servers.endpoints[0]}/kafka")
    except NoToolError as error:
        pytest.skip(f"not run: {error}")
    try:
        kafka.start()
        kafka.topics(
            "--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=1111"
        )
        kafka.topics("--create", "--topic", "doomed", "--partitions", "1")
        alter = ("--alter", "--entity-type")
        kafka.configs(
            *alter, "brokers", "--entity-default", "--add-config", "log.cleaner.threads=2"
        )
        # Kafka's tool refuses a quota and a credential in one command.
        for key in ("producer_byte_rate=2048", "SCRAM-SHA-256=[iterations=4096,password=secret]"):
            kafka.configs(*alter, "users", "--entity-name", "alice", "--add-config", key)
        kafka.acls_in_zookeeper(
            "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"
        )
        yield kafka
    finally:
        kafka.stop()


def configs_of(cluster: Any, kind: str, name: str) -> str:
    return json.dumps(shown(cluster, "configs", "describe", kind, name))


def test_a_cluster_of_kafka_moves_here(
    servers: ZooKeeperServers, kafka: LegacyKafka, tmp_path: Path
) -> None:
    url = f"zookeeper://{servers.endpoints[0]}/kafka"
    with running(tmp_path / "ours", brokers=1) as cluster:
        key = ("--cluster-key", str(cluster.folder / "config" / "cluster.key"))
        with bridge(cluster, url, "--follow") as run:
            run.wait_for("legacy brokers 0")
            assert "1111" in configs_of(cluster, "topic", "orders")
            assert "2048" in json.dumps(shown(cluster, "quotas", "list"))
            assert "alice" in json.dumps(shown(cluster, "users", "scram", "list"))
            assert "User:alice" in json.dumps(shown(cluster, "acls", "list"))
            kafka.topics("--delete", "--topic", "doomed")
            until(lambda: "doomed" not in topics(cluster))
            run.interrupt()

        with bridge(cluster, url, "--take-over", *key) as run:
            run.wait_for("this cluster leads")
            for asked in (
                ("configs", "set", "topic", "orders", "retention.ms=2222"),
                ("quotas", "set", "producer_byte_rate=4096", "--user", "bob"),
                ("acls", "add", "User:bob", "write", "topic:orders"),
            ):
                before = run.said.count("nodes written")
                ours(cluster, *asked)
                run.wait_for("nodes written", before + 1)
            assert "retention.ms=2222" in kafka.configs(
                "--describe", "--entity-type", "topics", "--entity-name", "orders"
            )
            assert "User:bob" in kafka.acls_in_zookeeper("--list")
            run.interrupt()
        ours(cluster, "import", "zookeeper", url, "--roll-back")

        # Kafka leads alone again, with what was changed here.
        kafka.topics("--create", "--topic", "alone", "--partitions", "1")
        assert "retention.ms=2222" in kafka.topics("--describe", "--topic", "orders")
        with bridge(cluster, url, "--follow") as run:
            run.wait_for("legacy brokers 0")
            assert "alone" in topics(cluster)
            run.interrupt()

        with bridge(cluster, url, "--take-over", *key) as run:
            run.wait_for("this cluster leads")
            before = run.said.count("nodes written")
            spread = ("--partitions", "2", "--replication-factor", "1")
            ours(cluster, "topics", "create", "made-here", *spread)
            run.wait_for("nodes written", before + 1)
            ours(cluster, "import", "zookeeper", url, "--finalize")
            assert "the bridge has ended" in run.wait_for_end()
        assert {"orders", "alone", "made-here"} <= topics(cluster)
        assert "2222" in configs_of(cluster, "topic", "orders")
        found = json.dumps(shown(cluster, "acls", "list"))
        assert "User:alice" in found
        assert "User:bob" in found


def ours(cluster: Any, *arguments: str) -> None:
    done = command(cluster, *arguments)
    assert done.code == 0, done.err
