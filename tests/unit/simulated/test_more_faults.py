"""Faults that only drawn schedules have: each begins, ends, and does what it says."""

import errno
import random

import pytest

from runtime.simulated.fault_schedules import (
    ALL_BUT_DAMAGE,
    DAMAGE,
    TRIGGERED,
    FaultSchedule,
    draw_fault_schedule,
)
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.network import History
from tests.unit.simulated.chatter import Chatter
from tests.unit.simulated.folders import Folders, nemesis_of


def chatter(kind: str, length_s: float = 1.0) -> tuple[Chatter, Nemesis]:
    cluster = Chatter(1, size=3)
    for node_id in cluster.ids:
        cluster.start(node_id)
    one = FaultSchedule({kind: 1.0}, gap_s=(50.0, 60.0), length_s=(length_s, length_s))
    nemesis = Nemesis(cluster, one)
    nemesis.start()
    cluster.world.run_until(1)
    return cluster, nemesis


def test_a_read_only_disk_refuses_changes_and_takes_them_again() -> None:
    cluster = Folders(1)
    nemesis = nemesis_of(cluster, "read_only_disk")
    nemesis.inject("read_only_disk")
    cluster.world.run_for(0.4)
    assert set(cluster.failures) == {errno.EROFS}
    cluster.world.run_for(0.4)
    cluster.failures.clear()
    cluster.world.run_for(1)
    assert cluster.failures == []


def test_a_read_that_comes_soon_fails_once() -> None:
    cluster = Folders(2)
    nemesis = nemesis_of(cluster, "read_error", 5.0)
    nemesis.inject("read_error")
    cluster.world.run_for(2)
    assert cluster.failures == [errno.EIO]


def test_what_is_held_arrives_in_the_end_and_in_order() -> None:
    cluster, nemesis = chatter("hold")
    nemesis.inject("hold")
    held = [path for path in cluster.network.paths() if path.blocked]
    assert held
    heard = {p.target: dict(cluster.nodes[p.target].heard) for p in held}
    cluster.world.run_for(0.9)
    for path in held:
        assert cluster.nodes[path.target].heard == heard[path.target] | {
            n: h for n, h in cluster.nodes[path.target].heard.items() if n != path.source
        }
    links = {n: sorted(node.ups) for n, node in cluster.nodes.items()}
    cluster.world.run_for(0.5)
    for path in held:
        source, target = cluster.nodes[path.source], cluster.nodes[path.target]
        assert target.heard[path.source] > heard[path.target][path.source]
        assert path.source in target.ups
        assert source.process.alive
    assert links == {n: sorted(node.ups) for n, node in cluster.nodes.items()}


def test_old_frames_are_of_the_whole_run_and_arrive_on_links_of_today() -> None:
    cluster, nemesis = chatter("old_frames")
    cluster.world.run_until(5)
    before = {n: max(node.heard.values()) for n, node in cluster.nodes.items()}
    heard: list[int] = []
    for node in cluster.nodes.values():
        node.on_frame = lambda _sender, frame: heard.append(int(frame))
    nemesis.inject("old_frames")
    cluster.world.run_for(0.3)
    old = [number for number in heard if number < min(before.values()) // 2]
    assert len(old) > 10


def test_without_that_fault_nothing_is_remembered() -> None:
    cluster, _ = chatter("reset")
    assert all(path.history is None for path in cluster.network.paths())


def test_a_history_is_spread_over_the_run_and_stays_small() -> None:
    history, cluster = History(), Folders(1)
    process = cluster.hosts[1].process
    for number in range(10_000):
        history.note(b"%d" % number, lambda _frame: lambda: None, process)
    numbers = [int(frame) for frame in history.frames]
    assert 60 <= len(numbers) <= 129
    assert numbers == sorted(numbers)
    assert numbers[0] < 500
    assert numbers[-1] > 9_500


def test_who_is_killed_at_its_start_dies_again_and_lives_in_the_end() -> None:
    died = 0
    for seed in range(6):
        cluster = Folders(seed)
        nemesis = nemesis_of(cluster, "kill_at_start")
        nemesis.inject("kill_at_start")
        cluster.world.run_for(0.3)
        died += any(not host.running for host in cluster.hosts.values())
        cluster.world.run_for(0.5)
        assert all(host.running for host in cluster.hosts.values())
        assert sum(host.incarnations for host in cluster.hosts.values()) >= 6
    assert died >= 4


def test_an_ambush_waits_and_strikes_where_the_operation_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    struck = 0
    for seed in range(8):
        cluster = Folders(seed)
        nemesis = nemesis_of(cluster, "ambush", 0.05)
        nemesis.inject("ambush")
        cluster.world.run_for(0.5)
        assert not nemesis.counts
        cluster.busy = {3: ["jump"]}
        cluster.world.run_for(0.1)
        if nemesis.met:
            ((kind, met),) = nemesis.met.items()
            assert nemesis.counts == {kind: 1}
            struck += met["jump"]
    assert struck >= 5


def test_an_ambush_for_what_never_comes_is_given_up() -> None:
    cluster = Folders(1)
    nemesis = nemesis_of(cluster, "ambush")
    nemesis.inject("ambush")
    cluster.world.run_for(4)
    cluster.busy = {3: ["jump"]}
    cluster.world.run_for(2)
    assert not nemesis.counts


def test_strikes_are_counted_with_what_they_met() -> None:
    cluster = Folders(1)
    nemesis = nemesis_of(cluster, "kill_leader")
    cluster.busy = {1: ["jump"], 2: ["election"]}
    nemesis.inject("kill_leader")
    assert nemesis.counts == {"kill_leader": 1}
    assert nemesis.met == {"kill_leader": {"jump": 1}}


def test_every_fault_has_a_weight_and_every_weight_a_fault() -> None:
    nemesis = nemesis_of(Folders(1), "power")
    assert set(nemesis._acts) == {*ALL_BUT_DAMAGE, *DAMAGE}


def test_a_torment_is_drawn_by_its_dice_and_within_bounds() -> None:
    drawn = [draw_fault_schedule(random.Random(f"x/{n}"), ALL_BUT_DAMAGE) for n in range(200)]
    assert drawn == [
        draw_fault_schedule(random.Random(f"x/{n}"), ALL_BUT_DAMAGE) for n in range(200)
    ]
    seen: set[str] = set()
    for fault_schedule in drawn:
        assert fault_schedule.weights
        assert all(fault_schedule.weights[kind] > 0 for kind in fault_schedule.weights)
        assert 0 < fault_schedule.gap_s[0] < fault_schedule.gap_s[1]
        assert 0 < fault_schedule.length_s[0] < fault_schedule.length_s[1]
        seen |= set(fault_schedule.weights)
    assert seen == set(ALL_BUT_DAMAGE)
    assert min(len(fault_schedule.weights) for fault_schedule in drawn) == 1
    assert 0.3 < sum(set(TRIGGERED) <= set(t.weights) for t in drawn) / 200 < 0.9
