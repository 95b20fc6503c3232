"""The nemesis: each fault begins and ends, a seed repeats all of them, and all are healed."""

import pytest

from runtime.simulated.disk_faults import FAST
from runtime.simulated.fault_schedules import (
    EVERYTHING,
    WITH_FULL_DISKS,
    WITHIN_PROMISE,
    FaultSchedule,
)
from runtime.simulated.nemesis import Nemesis
from tests.unit.simulated.chatter import Chatter, fault_schedule

KINDS = list(WITH_FULL_DISKS.weights)


def a_cluster(seed: int = 1) -> Chatter:
    cluster = Chatter(seed, size=5)
    for node_id in cluster.ids:
        cluster.start(node_id)
    cluster.world.run_until(1)
    return cluster


def disturbances(cluster: Chatter) -> list[str]:
    """All that is not as it is in peace."""
    found = [f"cut {p.source} {p.target}" for p in cluster.network.paths() if p.blocked]
    if any(path.profile.loss or path.profile.low_us > 50 for path in cluster.network.paths()):
        found.append("noise")
    for node_id, host in cluster.hosts.items():
        if not host.running:
            found.append(f"down {node_id}")
        elif host.process.paused:
            found.append(f"paused {node_id}")
        if host.faults.profile != FAST or host.faults.capacity_bytes is not None:
            found.append(f"disk {node_id}")
        if host.machine.rate != 1.0 or host.machine.wall_offset_us:
            found.append(f"clock {node_id}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_strikes_and_ends_by_itself(kind: str) -> None:
    struck = 0
    for seed in range(3):
        cluster = a_cluster(seed)
        incarnations = sum(host.incarnations for host in cluster.hosts.values())
        nemesis = Nemesis(cluster, FaultSchedule({kind: 1.0}, gap_s=(0.1, 0.2), length_s=(1, 2)))
        nemesis.start()
        cluster.world.run_for(0.5)
        assert nemesis.history
        reborn = sum(host.incarnations for host in cluster.hosts.values()) - incarnations
        struck += bool(disturbances(cluster) or reborn or kind == "reset")
        nemesis.heal()
        cluster.world.run_for(3)
        left = [what for what in disturbances(cluster) if kind != "wall_jump"]
        assert left == []
    assert struck == 3


@pytest.mark.slow
def test_faults_end_without_the_final_heal() -> None:
    cluster = a_cluster(3)
    kinds = {k: 1.0 for k in KINDS if k != "wall_jump"}
    nemesis = Nemesis(cluster, FaultSchedule(kinds, gap_s=(0.3, 0.3), length_s=(0.1, 0.1)))
    for kind in kinds:
        nemesis._injector.going = True
        nemesis.inject(kind)
        cluster.world.run_for(2)
        assert disturbances(cluster) == [], kind


@pytest.mark.parametrize("seed", range(6))
def test_after_the_heal_all_run_and_are_linked_and_nothing_told_is_lost(seed: int) -> None:
    cluster, nemesis = fault_schedule(seed, seconds=10)
    assert [what for what in disturbances(cluster) if "clock" not in what] == []
    for node in cluster.nodes.values():
        others = [node_id for node_id in cluster.ids if node_id != node.id]
        assert sorted(node.ups) == others
        assert sorted(node.heard) == others
    assert nemesis.history[-1].endswith("heal")
    assert min(cluster.told.values()) > 50


def test_a_seed_repeats_its_faults_and_another_has_others() -> None:
    histories = [fault_schedule(seed, seconds=5)[1].history for seed in (1, 1, 2)]
    assert histories[0] == histories[1]
    assert histories[0] != histories[2]


def test_no_fault_begins_after_the_heal() -> None:
    cluster, nemesis = fault_schedule(4, seconds=5)
    lines = len(nemesis.history)
    cluster.world.run_for(20)
    assert len(nemesis.history) == lines


def test_the_torments_are_what_they_say() -> None:
    assert "wild" not in WITHIN_PROMISE.weights
    assert set(WITH_FULL_DISKS.weights) - set(EVERYTHING.weights) == {"full_disk"}


def test_the_check_of_the_toy_cluster_sees_a_node_that_tells_too_early() -> None:
    """The property above is worth something: telling before the sync is found out."""

    def early(seed: int) -> bool:
        cluster = a_cluster(seed)
        for node in cluster.nodes.values():
            node.append()
            cluster.told[node.id] += 1
            node.syncing = True
            cluster.hosts[node.id].lose_power()
        try:
            for node_id in cluster.ids:
                cluster.start(node_id)
        except Exception as error:  # noqa: BLE001
            return "what was told is gone" in str(error)
        return False

    assert sum(early(seed) for seed in range(10)) >= 5
