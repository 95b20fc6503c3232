"""Many unauthenticated connections to three real controllers with 1,024 descriptors each.

Rows 8, 9 and 11 of docs/probes.md: whatever such connections do, the leader's epoch stays, changes
are made, memory grows by at most 64 MiB, and a broken link comes back. `benchmarks/door/` has the
figures at full size.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.door.loads import MIB, Load
from benchmarks.instruments.memory import forget_peak, peak_bytes
from tests.process.running_cluster import RunningCluster

pytestmark = pytest.mark.process

DESCRIPTORS = 1024
GROWTH_MAX = 64 * MIB


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture(scope="module", params=[DESCRIPTORS, None], ids=["1024", "many"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCluster]:
    """With few descriptors idle connections do most harm; with many, half bodies do."""
    cluster = RunningCluster(
        tmp_path_factory.mktemp("door"), brokers=1, require_authentication=True
    )
    if request.param is not None:
        cluster.limit_descriptors(request.param)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(autouse=True)
def the_leader_stays(cluster: RunningCluster) -> Iterator[None]:
    """Whatever stands at the door: the same leader in the same epoch, and changes are made."""
    before = epoch(cluster)
    yield
    assert epoch(cluster) == before
    cluster.create(f"after-{len(cluster.acknowledged)}")
    assert epoch(cluster) == before


def epoch(cluster: RunningCluster) -> Any:
    status = cluster.status(cluster.leader())
    assert status is not None
    return status["leaderEpoch"]


def changes_are_made(cluster: RunningCluster, count: int = 10) -> None:
    """Make changes with one attempt each: none is refused, and no leader changes meanwhile."""
    for _ in range(count):
        new = {"name": f"under-load-{len(cluster.acknowledged)}", "numPartitions": 1}
        answer = cluster.ask(
            cluster.url(cluster.leader()),
            "POST",
            "/v1/topics",
            {"topics": [{**new, "replicationFactor": 1}]},
        )
        assert answer.status == 200, answer
        cluster.acknowledged.append(str(new["name"]))


few = pytest.mark.parametrize("cluster", [DESCRIPTORS], ids=["1024"], indirect=True)
many = pytest.mark.parametrize("cluster", [None], ids=["many"], indirect=True)


@few
@pytest.mark.parametrize("where", ["http", "quorum"])
def test_more_idle_connections_than_descriptors(cluster: RunningCluster, where: str) -> None:
    leader = cluster.leader()
    address = cluster.url(leader) if where == "http" else cluster.local.quorum_address(leader)
    with Load(port_of(address), Path(cluster.local.file.ca)) as load:
        load.idle(1100)
        assert load.opened > 1000, "the listener stopped accepting"
        changes_are_made(cluster)
        open_now = len(list(Path(f"/proc/{cluster.controller(leader).pid}/fd").iterdir()))
        assert open_now < DESCRIPTORS - 128, "the reserve was touched"
    assert "accept_failed" not in cluster.output(f"controller-{leader}")


@few
def test_a_link_comes_back_through_a_crowd_on_the_quorum_port(cluster: RunningCluster) -> None:
    leader, standby = cluster.leader(), cluster.standby()
    with Load(port_of(cluster.local.quorum_address(leader)), Path(cluster.local.file.ca)) as load:
        cluster.controller(standby).kill()
        load.idle(400)
        cluster.controller(standby).start()
        cluster.until(lambda: cluster.status(standby) is not None, "the standby is back")
        cluster.until(cluster.caught_up, "it has caught up")
        changes_are_made(cluster)
    # It dialled as often as it does with nobody at the door, and not again and again.
    assert metric(cluster, standby, 'logberg_links_events_total{event="dials_failed"}') <= 1


@many
def test_half_bodies_of_strangers_are_not_read(cluster: RunningCluster) -> None:
    with door_of_the_leader(cluster) as load:
        load.half_bodies(100, 2_500_000)
        changes_are_made(cluster)


@many
def test_half_bodies_of_a_known_caller_stay_within_the_budget(cluster: RunningCluster) -> None:
    with door_of_the_leader(cluster) as load:
        load.half_bodies(60, 2_500_000, cluster.token)
        changes_are_made(cluster)


@many
@pytest.mark.parametrize("kind", ["idle", "half_hellos"])
def test_connections_to_the_tls_port_cost_little(cluster: RunningCluster, kind: str) -> None:
    with door_of_the_leader(cluster) as load:
        getattr(load, kind)(1000)
        changes_are_made(cluster)


@contextmanager
def door_of_the_leader(cluster: RunningCluster) -> Iterator[Load]:
    """A load on its HTTP port; at the end its memory has not grown beyond the bound."""
    leader = cluster.leader()
    pid = cluster.controller(leader).pid
    forget_peak(pid)
    before = peak_bytes(pid)
    with Load(port_of(cluster.url(leader)), Path(cluster.local.file.ca)) as load:
        yield load
        assert peak_bytes(pid) - before < GROWTH_MAX


def metric(cluster: RunningCluster, n: int, name: str) -> float:
    """A figure of a controller; 0 when it has not been counted yet."""
    text = cluster.ask(cluster.url(n), "GET", "/metrics").body.decode()
    return next((float(li.split()[-1]) for li in text.splitlines() if li.startswith(name)), 0.0)
