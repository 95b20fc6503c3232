"""Controllers with a broker's agent in the same process: restarts, and failures of either role.

The agent ends before its controller, and a role that fails ends the process (ADR 0035).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process.combined_cluster import CombinedCluster
from tests.process.faulty_disk import FaultyDisk
from tests.process.running_cluster import RunningCluster

pytestmark = pytest.mark.process

ORDER = ["broker_role_ending", "agent_ended", "controller_ended"]


@contextmanager
def changes(cluster: RunningCluster) -> Iterator[None]:
    """Create topics one after the other meanwhile; the cluster remembers what it acknowledged."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def create() -> None:
        count = 0
        try:
            while not ended.wait(0.02):
                cluster.create(f"meanwhile-{count}", replication_factor=2)
                count += 1
        except BaseException as error:  # noqa: BLE001 - raised again where the test waits
            failures.append(error)

    worker = threading.Thread(target=create)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join()
    assert failures == []


@pytest.mark.slow
def test_a_rolling_restart_loses_no_change_and_leaves_no_partition_without_a_leader(
    tmp_path: Path,
) -> None:
    cluster = CombinedCluster(tmp_path / "cluster")
    try:
        cluster.start()
        for count in range(3):
            cluster.create(f"before-{count}", partitions=4, replication_factor=3)
        with changes(cluster):
            # The active controller is the last one.
            leader = cluster.leader()
            for n in sorted(cluster.local.controllers, key=lambda n: n == leader):
                before = len(cluster.acknowledged)
                if n == 2:
                    cluster.controller(n).signal(signal.SIGTERM)
                assert cluster.stop_node(n) == 0, cluster.output(f"controller-{n}")[-3_000:]
                assert cluster.events(n, *ORDER) == ORDER
                assert cluster.list_partitions("leaderless") == []
                cluster.controller(n).start()
                cluster.until(cluster.settled, f"node {n} is back")
                cluster.until(
                    lambda: cluster.list_partitions("underReplicated") == [], "all ISRs are full"
                )
                cluster.until(
                    lambda before=before: len(cluster.acknowledged) > before, "changes go on"
                )
        cluster.check_nothing_lost()
    finally:
        cluster.kill()


def test_an_agent_that_is_refused_ends_its_node_in_order(tmp_path: Path) -> None:
    """The controller beside it is sound, but only a new process may register the broker again."""
    cluster = CombinedCluster(tmp_path / "cluster", 1)
    try:
        cluster.start()
        # Each role answers on its own listener, and for itself.
        agent = f"https://127.0.0.1:{cluster.agent_port(1)}"
        for url, metric in ((cluster.url(1), b"logberg_log_end"), (agent, b"logberg_broker_state")):
            assert cluster.ask(url, "GET", "/health/ready", token=None).status == 200
            assert metric in cluster.ask(url, "GET", "/metrics").body
        answer = cluster.ask(cluster.url(1), "DELETE", "/v1/brokers/1?force=true")
        assert answer.status == 200, answer
        assert cluster.controller(1).wait(20.0)
        output = cluster.output("controller-1")
        assert cluster.controller(1).exit_code == 1, output
        named = ["broker_role_ending", "agent_ended", "role_failed", "controller_ended"]
        assert cluster.events(1, *named) == named
        assert '"role": "broker"' in output
        said = output.rpartition("logberg broker: ")[2].partition("\n")[0]
        assert f'"reason": "{said}", "event": "controller_ended"' in output
        # A new process registers the broker, and the controller has all that it had.
        cluster.controller(1).start()
        cluster.until(cluster.settled, "the node is back")
    finally:
        cluster.kill()


def test_a_controller_that_stops_itself_lets_its_agent_hand_over(tmp_path: Path) -> None:
    cluster = CombinedCluster(tmp_path / "cluster")
    disk = FaultyDisk(tmp_path, cluster.data(1))
    patch = pytest.MonkeyPatch()
    try:
        for name, value in disk.environment.items():
            patch.setenv(name, value)
        cluster.start()
        cluster.create("topic", partitions=6, replication_factor=3)
        disk.fail("eio")
        cluster.create("another", replication_factor=2)
        assert cluster.controller(1).wait(30.0)
        output = cluster.output("controller-1")
        assert cluster.controller(1).exit_code == 74, output
        assert cluster.events(1, "role_failed", *ORDER) == ["role_failed", *ORDER]
        assert '"role": "controller"' in output
        # The other two controllers gave the leaders to their brokers before the process ended.
        assert cluster.list_partitions("leaderless") == []
        leaders = cluster.ask(cluster.url(cluster.leader()), "GET", "/v1/topics/topic").body
        assert 1 not in {p["leader"] for t in leaders["topics"] for p in t["partitions"]}, leaders
        assert "leaders have moved" in output
    finally:
        patch.undo()
        cluster.kill()
