"""The bridge on real processes: controllers, a real ZooKeeper, and the command between them.

It runs only with LOGBERG_SERVERS=1. The tree is the one in `kafka_tree.json`.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from benchmarks.peers.tools import NoToolError
from tests.coordination.servers.tier import not_run_reason
from tests.coordination.servers.zookeeper import ZooKeeperServers
from tests.process.bridge_runs import bridge
from tests.process.running_cluster import Said, running
from tests.process.test_import import load

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = "/kafka"
STATE = f"{ROOT}/brokers/topics/orders/partitions/0/state"


def command(cluster: Any, *arguments: str) -> Said:
    """Run a command within the cluster's folder."""
    said: Said = cluster.command(*arguments, "--data", ".")
    return said


def shown(cluster: Any, *arguments: str) -> Any:
    said = command(cluster, *arguments, "--output", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    reason = not_run_reason()
    if reason is not None:
        pytest.skip(reason)
    try:
        servers = ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))
    except NoToolError as error:
        pytest.skip(f"not run: {error}")
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture
def kafka(servers: ZooKeeperServers) -> Iterator[Any]:
    """A session that writes what Kafka would, with the tree in place."""
    client = KazooClient(hosts=servers.endpoints[0], timeout=10)
    client.start(20)
    try:
        load(client)
        yield client
        client.delete(ROOT, recursive=True)
    finally:
        client.stop()
        client.close()


def url_of(servers: ZooKeeperServers) -> str:
    return f"zookeeper://{servers.endpoints[0]}{ROOT}"


def test_zookeeper_leads_and_the_quorum_follows(
    servers: ZooKeeperServers, kafka: Any, tmp_path: Path
) -> None:
    with running(tmp_path) as cluster:
        with bridge(cluster, url_of(servers), "--follow") as run:
            run.wait_for("legacy brokers 0, 1, 2")
            names = {each["name"] for each in shown(cluster, "topics", "list")["topics"]}
            assert {"orders", "moving", "unclean", "ancient"} <= names

            refused = command(cluster, "topics", "delete", "orders")
            assert refused.code == 1
            assert "SOURCE_LEADS" in refused.err
            assert url_of(servers) in refused.err

            kafka.set(f"{ROOT}/config/topics/orders", b'{"config":{"retention.ms":"777"}}')
            until(
                lambda: (
                    "777" in json.dumps(shown(cluster, "configs", "describe", "topic", "orders"))
                )
            )
            kafka.delete(f"{ROOT}/brokers/ids/2")
            run.wait_for("legacy brokers 0, 1\n")
            kafka.create(f"{ROOT}/admin/delete_topics/moving", b"")
            until(lambda: "moving" not in topics(cluster))
            said = run.interrupt()
            assert "stopped at zxid" in said
            assert run.child.exit_code == 0

        kafka.create(f"{ROOT}/brokers/topics/later", topic([0, 1]))
        assert "later" not in topics(cluster)
        with bridge(cluster, url_of(servers), "--follow") as run:
            run.wait_for("zxid")
            assert "later" in topics(cluster)
            servers.kill()
            run.wait_for("waiting for the source")
            servers.start()
            kafka.retry(kafka.create, f"{ROOT}/brokers/topics/latest", topic([0]))
            until(lambda: "latest" in topics(cluster))

        told = cluster.command("audit", "who", "controller-1", "bridge:source")
        assert "bridge from zookeeper:" in told.out
        assert "followsource" in told.out.lower()


def topics(cluster: Any) -> set[str]:
    return {each["name"] for each in shown(cluster, "topics", "list")["topics"]}


def topic(replicas: list[int]) -> bytes:
    node = {"version": 3, "topic_id": ids.pop(), "partitions": {"0": replicas}}
    return json.dumps(node).encode()


ids = ["CeWW5BSKWE2ClPIKl05eLA", "CeWW5BSKWE2ClPIKl05eLQ", "CeWW5BSKWE2ClPIKl05eLg"]
"""Ids of topics that the tests make."""


def until(look: Any, patience_s: float = 30.0) -> None:
    limit = time.monotonic() + patience_s
    while not look():
        assert time.monotonic() < limit
        time.sleep(0.1)
