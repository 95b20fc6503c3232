"""Real agents send heartbeats to real standbys, with TLS, and through the death of a leader."""

import re
from collections.abc import Iterator

import pytest

from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process

SESSION_MS = 3_000
_CONFIRMED = re.compile(
    rb'^logberg_forwarded_heartbeats_total{outcome="confirmed"} (\d+)', re.MULTILINE
)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(
        tmp_path_factory.mktemp("standbys"),
        brokers=3,
        session_ms=SESSION_MS,
        of_brokers={"fetch_from": "any"},
        standbys_take_heartbeats=True,
    ) as cluster:
        yield cluster


def confirmed(cluster: RunningCluster) -> dict[int, int]:
    """By controller: the heartbeats that it has forwarded and got confirmed."""
    found = {}
    for n, child in cluster.local.controllers.items():
        if child.running:
            metrics = _CONFIRMED.search(cluster.ask(cluster.url(n), "GET", "/metrics").body)
            assert metrics is not None
            found[n] = int(metrics[1])
    return found


def more_than(cluster: RunningCluster, before: dict[int, int], *nodes: int) -> bool:
    now = confirmed(cluster)
    return all(now[n] > before[n] + 3 for n in nodes)


def test_brokers_stay_online_by_their_standbys_and_through_a_kill(cluster: RunningCluster) -> None:
    leader = cluster.leader()
    standbys = [n for n in cluster.local.controllers if n != leader]
    before = confirmed(cluster)
    cluster.until(lambda: more_than(cluster, before, *standbys), "both standbys forward")
    assert confirmed(cluster)[leader] == before[leader]
    cluster.create("before-the-kill")
    cluster.controller(leader).kill()
    following = cluster.leader(but=leader)
    (still,) = set(standbys) - {following}
    before = confirmed(cluster)
    cluster.until(lambda: more_than(cluster, before, still), "the other one forwards to the next")
    states = cluster.broker_states()
    assert set(states.values()) == {"online"}
    cluster.controller(leader).start()
    cluster.until(cluster.settled, "it is back")
    for n in cluster.local.brokers:
        said = cluster.output(f"broker-{n}")
        assert "broker_registered" in said
        assert "self_fenced" not in said
