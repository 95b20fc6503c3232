"""The active controller is killed or paused: another takes over, and no broker is fenced.

There is one trial of each. The benchmarks measure the time, over many trials.
"""

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.process.running_cluster import Answer, RunningCluster, logberg, running

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(tmp_path_factory.mktemp("failover"), brokers=3) as cluster:
        cluster.create("before", partitions=6)
        yield cluster


class Watch:
    """Looks at the brokers' states all the time, on a thread."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.seen: set[tuple[int, str]] = set()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self.seen |= set(self._cluster.broker_states().items())

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def test_a_killed_leader_is_replaced_and_every_broker_stays_online(
    cluster: RunningCluster,
) -> None:
    killed = cluster.leader()
    with Watch(cluster) as watch:
        cluster.controller(killed).kill()
        cluster.create("after-the-kill")
        assert cluster.leader() != killed
        outlive_a_session(cluster)
        cluster.controller(killed).start()
        cluster.until(cluster.settled, "it is back")
    assert {state for _, state in watch.seen} == {"online"}
    cluster.until(cluster.caught_up, "it caught up")


def outlive_a_session(cluster: RunningCluster) -> None:
    """Let more than a session of three seconds pass, while changes are made."""
    rest = threading.Event()
    for number in range(8):
        cluster.create(f"within-{len(cluster.acknowledged)}-{number}")
        rest.wait(0.5)


def test_a_leader_that_stands_still_is_replaced_and_tells_nothing_stale_when_it_goes_on(
    cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = cluster.leader()
    child = cluster.controller(paused)
    late: dict[str, Answer] = {}

    def ask(what: str, method: str, path: str, body: Any = None) -> threading.Thread:
        def run() -> None:
            late[what] = cluster.ask(cluster.url(paused), method, path, body, timeout_s=60.0)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    monkeypatch.setattr(cluster, "timeout_s", 0.5)
    child.signal(signal.SIGSTOP)
    with Watch(cluster) as watch:
        try:
            asked = [
                ask("read", "GET", "/v1/topics"),
                ask(
                    "change",
                    "POST",
                    "/v1/topics",
                    {"topics": [{"name": "asked-of-the-dead", "replicationFactor": 1}]},
                ),
            ]
            assert cluster.leader(but=paused) != paused
            cluster.create("after-the-pause")
            outlive_a_session(cluster)
        finally:
            child.signal(signal.SIGCONT)
            monkeypatch.undo()
        for thread in asked:
            thread.join(20.0)
        cluster.until(cluster.settled, "it follows")
    assert {state for _, state in watch.seen} == {"online"}
    # What was asked while it stood still is answered by what it knows now, or not at all.
    read, change = late["read"], late["change"]
    names = {topic["name"] for topic in read.body["topics"]} if read.status == 200 else set()
    assert read.status in (421, 503) or "after-the-pause" in names, read
    assert change.status in (421, 503), change
    assert (cluster.status(paused) or {})["role"] == "follower"
    cluster.until(cluster.caught_up, "it caught up")


def test_no_broker_was_ever_fenced_says_the_log(cluster: RunningCluster) -> None:
    cluster.until(cluster.caught_up, "all hold the same")
    said = logberg("log", "dump", str(cluster.data(1)))
    assert said.code == 0, said
    assert "RegisterBroker" in said.out
    assert "UnfenceBroker" in said.out
    assert "  FenceBroker" not in said.out
    cluster.check_nothing_lost()


def test_an_agent_that_reaches_no_controller_still_stops(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running(tmp_path_factory.mktemp("alone"), controllers=1, brokers=1) as alone:
        alone.controller(1).kill()
        agent = alone.local.brokers[1]
        agent.signal(signal.SIGTERM)
        # Its own limit for the whole shutdown is 300 s.
        assert agent.wait(60.0), alone.output("broker-1")
        assert agent.exit_code == 1
        assert "no active controller has answered for 4 s" in alone.output("broker-1")
