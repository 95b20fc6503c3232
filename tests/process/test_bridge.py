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

from tests.coordination.servers.tier import serving
from tests.coordination.servers.zookeeper import ZooKeeperServers
from tests.process.bridge_runs import bridge
from tests.process.running_cluster import running
from tests.process.test_import import command, load, shown

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = "/kafka"
STATE = f"{ROOT}/brokers/topics/orders/partitions/0/state"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with serving(lambda: ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))) as servers:
        yield servers


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


def test_the_quorum_takes_over_writes_back_and_finalises(
    servers: ZooKeeperServers, kafka: Any, tmp_path: Path
) -> None:
    """M7 and M8."""
    kafka.set(f"{ROOT}/controller_epoch", b"7")
    url = url_of(servers)
    with running(tmp_path) as cluster:
        early = command(cluster, "import", "zookeeper", url, "--take-over")
        assert "begin with --follow" in early.err
        with bridge(cluster, url, "--follow") as run:
            run.wait_for("zxid")
            run.interrupt()
        with bridge(cluster, url, "--take-over") as run:
            run.wait_for("this cluster leads")
            assert kafka.get(f"{ROOT}/controller_epoch")[0] == b"8"
            claimed, stat = kafka.get(f"{ROOT}/controller")
            assert stat.ephemeralOwner == 0
            assert json.loads(claimed)["kraftControllerEpoch"] >= 0
            changed = command(cluster, "configs", "set", "topic", "orders", "retention.ms=4711")
            assert changed.code == 0, changed.err
            until(lambda: b"4711" in kafka.get(f"{ROOT}/config/topics/orders")[0])
            assert command(cluster, "topics", "delete", "moving").code == 0
            until(lambda: kafka.exists(f"{ROOT}/brokers/topics/moving") is None)
            kafka.delete(f"{ROOT}/brokers/ids/2")
            run.interrupt()

        # While nobody writes back, a change stays here, and a difference stops the end.
        assert command(cluster, "configs", "set", "topic", "orders", "retention.ms=5000").code == 0
        refused = command(cluster, "import", "zookeeper", url, "--finalize")
        assert refused.code == 1
        assert "set /config/topics/orders" in refused.err
        with bridge(cluster, url, "--take-over") as run:
            until(lambda: b"5000" in kafka.get(f"{ROOT}/config/topics/orders")[0])
            done = command(cluster, "import", "zookeeper", url, "--finalize")
            assert done.code == 0, done.err
            assert "the bridge has ended" in run.wait_for_end()
        assert command(cluster, "configs", "set", "topic", "orders", "retention.ms=6000").code == 0
        time.sleep(1)
        assert b"5000" in kafka.get(f"{ROOT}/config/topics/orders")[0]
        again = command(cluster, "import", "zookeeper", url, "--roll-back")
        assert again.code == 1


def test_a_foreign_write_stops_the_bridge_and_a_roll_back_ends_it(
    servers: ZooKeeperServers, kafka: Any, tmp_path: Path
) -> None:
    """M7 and M9."""
    url, path = url_of(servers), f"{ROOT}/config/topics/orders"
    with running(tmp_path) as cluster:
        with bridge(cluster, url, "--follow") as run:
            run.wait_for("zxid")
            run.interrupt()
        with bridge(cluster, url, "--take-over") as run:
            run.wait_for("this cluster leads")
            kafka.set(path, b'{"version":1,"config":{"retention.ms":"1"}}')
            said = run.wait_for_end()
            assert "/config/topics/orders: somebody else wrote it" in said
            assert "version" in said
            assert run.child.exit_code == 1
        assert command(cluster, "configs", "set", "topic", "orders", "retention.ms=9").code == 0
        with bridge(cluster, url, "--take-over") as run:
            assert "/config/topics/orders: somebody else wrote it" in run.wait_for_end()
        assert b'"1"' in kafka.get(path)[0], "nothing is overwritten"
        done = command(cluster, "import", "zookeeper", url, "--roll-back")
        assert done.code == 0, done.err
        assert kafka.exists(f"{ROOT}/controller") is None
        assert kafka.exists(f"{ROOT}/migration") is None
        # ZooKeeper leads alone; somebody may claim it, and the cluster is nobody's mirror.
        kafka.create(f"{ROOT}/controller", b'{"version":2,"brokerid":1}', ephemeral=True)
        assert command(cluster, "configs", "set", "topic", "orders", "retention.ms=10").code == 0


def test_another_claim_stops_the_bridge(
    servers: ZooKeeperServers, kafka: Any, tmp_path: Path
) -> None:
    url = url_of(servers)
    with running(tmp_path) as cluster:
        with bridge(cluster, url, "--follow") as run:
            run.wait_for("zxid")
            run.interrupt()
        with bridge(cluster, url, "--take-over") as run:
            run.wait_for("this cluster leads")
            run.interrupt()
        kafka.set(f"{ROOT}/controller_epoch", b"99")
        with bridge(cluster, url, "--take-over") as run:
            assert "another controller leads there" in run.wait_for_end()
        gone = command(cluster, "import", "zookeeper", url, "--roll-back")
        assert gone.code == 0, gone.err
        assert kafka.exists(f"{ROOT}/controller") is not None, "it is the other one's"
