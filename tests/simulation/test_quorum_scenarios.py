"""Scenarios of one simulated quorum, told by hand: what happens, and when it is over."""

from collections import deque
from typing import Any

import pytest

from runtime.simulated.disk_faults import STUCK
from runtime.simulated.world import SimulationFailedError
from tests.mutants.table import broken
from tests.simulation.quorum_cluster import QuorumCluster, Shape
from tests.simulation.quorum_scenario import leader_of, settles, under_way

pytestmark = pytest.mark.simulation


def cluster(nodes: int = 3, seed: int = 5, **shape: Any) -> QuorumCluster:
    made = QuorumCluster(seed, Shape(nodes=nodes, **shape))
    return under_way(made, seconds=1)


def test_a_killed_leader_is_replaced_within_a_fifth_of_a_second() -> None:
    took = []
    for seed in range(20):
        made = cluster(seed=seed)
        before, began = leader_of(made), made.world.now
        made.hosts[before].kill()
        assert made.world.run_for(3, lambda m=made, b=before: m.serving() not in {None, b})
        took.append(made.world.now - began)
    assert sorted(took)[10] < 0.2
    assert max(took) < 1.5


def test_a_frozen_leader_is_replaced_within_two_timeouts_and_steps_down_when_it_thaws() -> None:
    for seed in range(10):
        made = cluster(seed=seed)
        before, began = leader_of(made), made.world.now
        made.hosts[before].pause()
        others = {n: o for n, o in made.owners.items() if n != before}
        assert made.world.run_for(
            3,
            lambda o=others: any(owner.leads is not None for owner in o.values()),
        )
        assert made.world.now - began < 1.2
        made.hosts[before].resume()
        made.world.run_for(1)
        assert made.owners[before].leads is None
        settles(made)


def test_no_election_in_half_a_minute_of_load() -> None:
    made = cluster(proposals_per_s=100.0)
    made.world.run_for(30)
    assert made.leaderships == 1
    settles(made)


def test_a_node_that_was_cut_off_comes_back_without_an_election() -> None:
    """Pre-vote: alone it moves nobody's term, not even its own."""
    made = cluster(nodes=5)
    lone = next(n for n in made.hosts if n != leader_of(made))
    others = [n for n in made.hosts if n != lone]
    made.network.cut([lone], others)
    made.world.run_for(30)
    made.network.mend([lone], others)
    made.world.run_for(5)
    assert made.leaderships == 1
    settles(made)


@pytest.mark.parametrize("deaf", [True, False])
def test_a_leader_that_can_only_send_or_only_receive_steps_down_within_a_timeout(
    deaf: bool,
) -> None:
    made = cluster()
    leader = leader_of(made)
    for other in made.hosts:
        if other != leader:
            made.network.block(*((other, leader) if deaf else (leader, other)))
    began = made.world.now
    assert made.world.run_for(2, lambda: made.owners[leader].leads is None)
    assert made.world.now - began < 0.7
    made.world.run_for(2)
    assert made.serving() not in {None, leader}
    made.network.heal()
    settles(made)
    assert made.leaderships <= 4


def test_a_bridge_leaves_a_stable_leader() -> None:
    """Two halves that meet in one node only: the shape of Cloudflare's outage of 2020."""
    made = cluster(nodes=5)
    bridge = 3
    made.network.cut([1, 2], [4, 5])
    made.world.run_for(5)
    before = made.leaderships
    made.world.run_for(20)
    assert made.leaderships - before <= 1
    acknowledged = made.proposers.counts.acknowledged
    made.world.run_for(1)
    assert made.proposers.counts.acknowledged > acknowledged
    assert bridge in made.hosts
    made.network.heal()
    settles(made)


def test_a_follower_that_was_away_for_long_jumps_and_then_follows() -> None:
    made = cluster(tail_bytes=2_000, compact_every=10, window_bytes=4_000)
    away = next(n for n in made.hosts if n != leader_of(made))
    made.hosts[away].kill()
    made.world.run_for(10)
    made.start(away)
    made.world.run_for(5)
    settles(made)
    assert made.jumps >= 1


def test_a_jump_goes_on_from_another_peer_when_its_source_dies() -> None:
    made = cluster(tail_bytes=2_000, compact_every=10, payload_bytes=(400, 900))
    source = leader_of(made)
    away = next(n for n in made.hosts if n != source)
    made.hosts[away].kill()
    made.world.run_for(10)
    made.start(away)
    assert made.world.run_for(5, lambda: made.owners[away].catching_up is not None)
    made.hosts[source].kill()
    made.world.run_for(5)
    made.start(source)
    settles(made)


def test_a_wiped_disk_is_an_observer_that_holds_everything_and_counts_for_nothing() -> None:
    made = cluster(tail_bytes=2_000, compact_every=10)
    wiped = next(n for n in made.hosts if n != leader_of(made))
    made.hosts[wiped].lose_power()
    made.hosts[wiped].platter.wipe()
    made.start(wiped)
    made.world.run_for(5)
    assert made.owners[wiped].quorum.status().role == "observer"
    assert made.jumps >= 1
    # One voter of three is gone for good: with another down, nothing may be acknowledged.
    third = next(n for n in made.hosts if n not in {wiped, leader_of(made)})
    made.hosts[third].kill()
    made.world.run_for(1)
    before = made.proposers.counts.acknowledged
    made.world.run_for(5)
    assert made.proposers.counts.acknowledged == before
    made.start(third)
    made.world.run_for(3)
    assert made.proposers.counts.acknowledged > before
    settles(made)


def test_a_damaged_voter_is_repaired_by_its_peers_and_votes_again() -> None:
    made = cluster()
    victim = next(n for n in made.hosts if n != leader_of(made))
    made.world.run_for(2)
    made.hosts[victim].kill()
    platter = made.hosts[victim].platter
    name = next(n for n in platter.names if n.endswith(".wal"))
    platter.flip_bit(name, len(platter.names[name].content) // 2)
    made.start(victim)
    assert made.owners[victim].quorum.status().role == "damaged"
    made.world.run_for(4)
    assert made.owners[victim].quorum.status().role == "follower"
    # Its vote is needed now: the other follower dies, then the leader resigns.
    third = next(n for n in made.hosts if n not in {victim, leader_of(made)})
    made.hosts[third].kill()
    leader = leader_of(made)
    made.hosts[leader].process.run(lambda: made.owners[leader].quorum.resign("a test"))
    assert made.world.run_for(4, lambda: made.serving() == victim)
    made.start(third)
    settles(made)


def lose_the_leaders_copy(made: QuorumCluster) -> None:
    """An entry reaches one follower while the leader's own copy waits for its disk; then the
    leader loses power, and only the other follower is there to elect it again.
    """
    leader = leader_of(made)
    has_it, lacks_it = (n for n in made.hosts if n != leader)
    made.network.cut([lacks_it], [leader, has_it])
    made.hosts[leader].faults.set_profile(STUCK)
    made.world.run_for(0.3)
    made.hosts[leader].lose_power()
    made.hosts[leader].faults.heal()
    made.network.heal()
    made.network.cut([has_it], [leader, lacks_it])
    made.start(leader)
    made.world.run_for(3)
    assert made.serving() in {leader, lacks_it}
    made.network.heal()


def test_what_the_leader_lost_was_never_acknowledged() -> None:
    for seed in range(8):
        made = cluster(seed=seed, proposals_per_s=200.0)
        lose_the_leaders_copy(made)
        settles(made)


def test_a_build_that_counts_the_leaders_unsynced_copy_is_caught() -> None:
    # More than one seed: what was not synced may survive a loss of power all the same.
    unsynced = broken("commit before own copy is durable")
    with unsynced, pytest.raises(SimulationFailedError, match="I5"):
        deque((lose_the_leaders_copy(cluster(seed=s, proposals_per_s=200.0)) for s in range(8)), 0)


def test_two_damaged_voters_of_three_elect_nobody() -> None:
    made = cluster()
    made.world.run_for(2)
    for host in made.hosts.values():
        host.kill()
    for victim in (1, 2):
        platter = made.hosts[victim].platter
        name = next(n for n in platter.names if n.endswith(".wal"))
        platter.flip_bit(name, len(platter.names[name].content) // 2)
    for node_id in made.hosts:
        made.start(node_id)
    before = made.leaderships
    made.world.run_for(20)
    assert made.leaderships == before


def test_a_leader_with_a_stuck_disk_hands_over_within_four_timeouts() -> None:
    made = cluster()
    leader = leader_of(made)
    made.hosts[leader].faults.set_profile(STUCK)
    began = made.world.now
    assert made.world.run_for(5, lambda: made.serving() not in {None, leader})
    assert made.world.now - began < 2.0
    made.hosts[leader].faults.heal()
    settles(made)


def test_resigning_hands_over_without_waiting_out_a_silence() -> None:
    made = cluster()
    leader, began = leader_of(made), made.world.now
    made.hosts[leader].process.run(lambda: made.owners[leader].quorum.resign("a test"))
    assert made.world.run_for(2, lambda: made.serving() not in {None, leader})
    assert made.world.now - began < 0.1
    settles(made)


def test_stopping_hands_over_too_and_a_start_goes_on() -> None:
    made = cluster()
    leader, began = leader_of(made), made.world.now
    made.hosts[leader].process.run(made.owners[leader].quorum.stop)
    made.owners[leader].leads = None
    others = [o for n, o in made.owners.items() if n != leader]
    assert made.world.run_for(2, lambda: any(o.leads is not None for o in others))
    assert made.world.now - began < 1.5
    made.hosts[leader].kill()
    made.start(leader)
    settles(made)


def test_a_broken_disk_stops_the_node_and_nothing_is_lost() -> None:
    made = cluster()
    leader = leader_of(made)
    made.hosts[leader].faults.fail("sync")
    made.world.run_for(2)
    [(stopped, reason)] = made.stopped
    assert stopped == leader
    assert "what was written may be lost" in reason
    # Its supervisor has started it again; somebody leads, and it holds everything.
    assert made.hosts[leader].incarnations == 2
    assert made.serving() is not None
    settles(made)


def test_a_disk_that_fills_up_is_not_led_from() -> None:
    made = cluster()
    leader = leader_of(made)
    host = made.hosts[leader]
    host.faults.capacity_bytes = host.platter.used_bytes() + 1_000_000
    made.world.run_for(4)
    assert made.serving() not in {None, leader}
    assert not made.owners[leader].stopped
    host.faults.heal()
    made.world.run_for(2)
    settles(made)
