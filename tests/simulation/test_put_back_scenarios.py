"""Scenarios of folders that were put back: whole, but older than what their node has promised.

Only other nodes can detect that (`quorum.guard.memory`, ADR 0014). A node that learns it treats its
journal as damaged until it has caught up with a leader that was elected without it.
"""

from collections import deque

import pytest

from quorum.guard.context import NodeContext
from quorum.guard.memory import Memory
from runtime.simulated.world import SimulationFailedError
from tests.simulation.patches import patched
from tests.simulation.quorum_cluster import QuorumCluster, Shape
from tests.simulation.quorum_scenario import (
    cluster,
    flip,
    followers_of,
    is_voter_again,
    leader_of,
    note,
    role,
    settles,
    under_way,
)

pytestmark = pytest.mark.simulation


def heals(made: QuorumCluster, victim: int) -> None:
    """With all voters in reach it is one of them again."""
    made.network.heal()
    is_voter_again(made, victim)
    settles(made)


def is_found_and_repaired(made: QuorumCluster, victim: int, copy: dict[str, bytes]) -> None:
    """Put a folder's copy back under a cluster that is whole otherwise."""
    made.hosts[victim].kill()
    made.hosts[victim].platter.restore(copy)
    made.start(victim)
    assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
    is_voter_again(made, victim)


def put_back(made: QuorumCluster, *, heard_by_the_third: bool = True) -> tuple[int, int, int]:
    """A voter's folder of seconds ago is put back, when only the leader beside it had its entries.

    Returns (leader, the voter, the third), the leader cut off.
    """
    leader = leader_of(made)
    victim, third = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    made.network.cut([third], [leader] if heard_by_the_third else [leader, victim])
    before = made.proposers.counts.acknowledged
    made.world.run_for(2)
    assert made.proposers.counts.acknowledged > before + 50
    made.hosts[victim].kill()
    made.network.cut([leader], [victim, third])
    made.network.mend([victim], [third])
    made.hosts[victim].platter.restore(copy)
    return leader, victim, third


@pytest.mark.parametrize("seed", range(3))
def test_a_restored_folder_is_no_voice_for_a_leader_that_lacks_what_was_acknowledged(
    seed: int,
) -> None:
    made = cluster(seed)
    leader, victim, third = put_back(made)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    assert f"node {third} remembers this folder" in note(made, victim)
    assert made.serving() is None
    heals(made, victim)
    assert leader in made.hosts


def test_peers_remember_through_their_own_restarts() -> None:
    """Everything stops, a folder of before is put back, everything starts but the one that knew."""
    made = cluster()
    leader, victim, third = put_back(made)
    for node_id in (leader, third):
        made.hosts[node_id].kill()
    made.network.heal()
    made.start(third)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    assert made.serving() is None
    made.start(leader)
    is_voter_again(made, victim)
    settles(made)


def race_for_the_voice(seed: int) -> None:
    """The third lacks entries and is there at once; the leader stands still for a moment more."""
    made = cluster(seed)
    leader, victim, third = put_back(made, heard_by_the_third=False)
    made.network.mend([leader], [victim])
    made.hosts[leader].pause()
    made.start(victim)
    made.world.run_for(0.3)
    made.hosts[leader].resume()
    assert made.world.run_for(0.3, lambda: role(made, victim) == "damaged")
    made.world.run_for(2)
    assert made.serving() != third
    heals(made, victim)


@pytest.mark.parametrize("seed", range(3))
def test_a_restored_folder_waits_for_the_peer_that_remembers_it(seed: int) -> None:
    race_for_the_voice(seed)


def test_a_build_that_does_not_wait_is_caught() -> None:
    at_once = (NodeContext, "_is_compared", lambda _: True)
    with patched((at_once,)), pytest.raises(SimulationFailedError, match="I5"):
        deque((race_for_the_voice(seed) for seed in range(3)), 0)


def forget_a_vote(seed: int) -> None:
    """The copy is older than its vote for another; it would go on helping the leader of before."""
    made = cluster(seed)
    old = leader_of(made)
    victim, new = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    made.world.run_for(0.5)
    made.network.cut([old], [victim, new])
    made.hosts[victim].process.run(
        lambda: made.owners[victim].quorum.guard.elections.step_back(3, 4)
    )
    assert made.world.run_for(4, lambda: made.serving() == new)
    made.world.run_for(0.5)
    made.network.cut([new], [old, victim])
    made.hosts[victim].kill()
    made.hosts[victim].platter.restore(copy)
    made.network.mend([old], [victim])
    made.world.run_for(2)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    heals(made, victim)


def test_a_vote_that_was_forgotten_is_not_cast_again() -> None:
    forget_a_vote(1)


def test_a_build_in_which_it_is_cast_again_is_caught() -> None:
    forgetful = (Memory, "_forgotten", lambda *_: None)
    with patched((forgetful,)), pytest.raises(SimulationFailedError, match=r"I\d"):
        forget_a_vote(1)


def test_a_folder_moved_back_and_forth_is_found_each_time() -> None:
    made = cluster()
    victim, _ = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    for _ in range(3):
        made.world.run_for(1)
        is_found_and_repaired(made, victim, copy)
    settles(made)


def test_to_the_leader_no_acknowledgement_is_forgotten_however_late_the_copy_was_made() -> None:
    made = cluster()
    victim, _ = followers_of(made)
    for _ in range(5):
        copy = made.hosts[victim].platter.snapshot()
        before = made.owners[victim].last_delivered
        assert made.world.run_for(1, lambda b=before: made.owners[victim].last_delivered > b)
        is_found_and_repaired(made, victim, copy)
    settles(made)


def test_restarts_and_losses_of_power_are_no_restored_folder() -> None:
    """Nobody is called damaged who only slept."""
    made = cluster(nodes=3)
    for number in range(6):
        victim = list(made.hosts)[number % 3]
        host = made.hosts[victim]
        host.lose_power() if number % 2 else host.kill()
        made.world.run_for(0.4)
        made.start(victim)
        for _ in range(20):
            made.world.run_for(0.05)
            assert "damaged" not in {role(made, n) for n in made.hosts}
    settles(made)


def test_what_is_not_promised_nobody_in_reach_remembers() -> None:
    """The third node was cut off since the copy, and the leader can't be reached.

    So two of three folders are gone at once.
    """
    made = cluster()
    _, victim, _ = put_back(made, heard_by_the_third=False)
    made.start(victim)
    with pytest.raises(SimulationFailedError, match="I5"):
        made.world.run_for(5)


def test_a_build_that_does_not_listen_to_what_peers_remember_is_caught() -> None:
    forgetful = (Memory, "_forgotten", lambda *_: None)
    made = cluster()
    with patched((forgetful,)):
        _, victim, _ = put_back(made)
        made.start(victim)
        with pytest.raises(SimulationFailedError, match="I5"):
            made.world.run_for(5)


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_that_lacks_one_entry_is_found(seed: int) -> None:
    """In a calm cluster it ends beyond what it knows to be durable: the next start writes there."""
    made = cluster(seed)
    made.busy = False
    made.world.run_for(2.5)
    leader = leader_of(made)
    victim, third = followers_of(made)
    copy = made.hosts[victim].platter.snapshot()
    made.network.cut([third], [leader])
    made.world.run_for(0.05)
    before, owner = made.proposers.counts.acknowledged, made.owners[leader]
    owner.process.run(lambda: made.proposers._burst(owner, 1))
    # More than a heartbeat, so that the third has heard of it.
    made.world.run_for(0.4)
    assert made.proposers.counts.acknowledged == before + 1
    made.hosts[victim].kill()
    made.network.cut([leader], [victim, third])
    made.hosts[victim].platter.restore(copy)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    assert f"node {third} remembers this folder" in note(made, victim)
    heals(made, victim)


@pytest.mark.parametrize("seed", range(3))
def test_a_repair_that_nobody_was_told_of_is_none(seed: int) -> None:
    """A sound copy of before the damage took its place, and promised; then it comes back."""
    made = cluster(seed)
    leader = leader_of(made)
    victim, third = followers_of(made)
    host = made.hosts[victim]
    host.kill()
    sound = host.platter.snapshot()
    flip(host.platter)
    made.start(victim)
    journal = made.owners[victim].quorum.context.journal
    assert made.world.run_for(6, lambda: not journal.damage)
    journal._writer.flush()
    assert journal.durable_position < journal.position_of_vote
    host.kill()
    repaired = host.platter.snapshot()
    host.platter.restore(sound)
    made.start(victim)
    made.world.run_for(1)
    assert role(made, victim) == "follower", note(made, victim)
    made.network.cut([third], [leader])
    before = made.proposers.counts.acknowledged
    made.world.run_for(2)
    assert made.proposers.counts.acknowledged > before + 50
    host.kill()
    made.network.cut([leader], [victim, third])
    host.platter.restore(repaired)
    made.start(victim)
    made.world.run_for(5)
    assert role(made, victim) == "damaged"
    heals(made, victim)


@pytest.mark.parametrize("seed", range(4))
def test_a_repair_that_was_told_outlives_a_loss_of_power_in_a_calm_cluster(seed: int) -> None:
    made = cluster(seed)
    victim, third = followers_of(made)
    made.busy = False
    made.world.run_for(2)
    host = made.hosts[victim]
    host.kill()
    flip(host.platter)
    made.start(victim)
    is_voter_again(made, victim)
    assert made.world.run_for(0.5, lambda: made.owners[victim].quorum.context.may_vote)
    made.world.run_for(60)
    for each in made.hosts.values():
        each.lose_power()
    # The leader's machine does not come back.
    made.start(victim)
    made.start(third)
    assert made.world.run_for(5, lambda: made.serving() is not None)
    assert role(made, victim) in ("follower", "leader"), note(made, victim)


def test_a_repair_that_power_took_back_is_no_accusation_without_cause() -> None:
    """At its next start the node reports again what peers told it before.

    The loss of power undid a repair; the fault atlas must allow for that.
    """
    made = QuorumCluster(5, Shape(nodes=3, proposals_per_s=30.0, reads_per_s=5.0))
    fault_atlas = made.expect_damage()
    under_way(made)
    victim, _ = followers_of(made)
    fault_atlas.victims = [victim]
    host = made.hosts[victim]
    copy = host.platter.snapshot()
    made.world.run_for(1)
    host.kill()
    host.platter.restore(copy)
    fault_atlas.forgot(victim)
    made.start(victim)
    assert made.world.run_for(1, lambda: role(made, victim) == "damaged")
    journal = made.owners[victim].quorum.context.journal
    assert made.world.run_for(6, lambda: not journal.damage)
    assert journal.durable_position < journal.position_of_vote
    host.lose_power()
    made.start(victim)
    assert role(made, victim) == "damaged"
    is_voter_again(made, victim)
    settles(made)
