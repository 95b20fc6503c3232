"""Scenarios of several folders that are put back at once.

Copies of one moment continue. Copies of different moments elect no leader; an operator can bring
them together with `accept-loss` and the order of starts in the runbook.
"""

import errno

import pytest

from quorum.node import ACCEPT_LOSS, QuorumNode
from tests.simulation.patches import patched
from tests.simulation.quorum_cluster import QuorumCluster, Shape
from tests.simulation.quorum_scenario import (
    cluster,
    flip,
    followers_of,
    is_voter_again,
    note,
    role,
    settles,
    stop_all,
)
from tests.unit.quorum.bench import Bench

pytestmark = pytest.mark.simulation


def from_copies(
    seed: int, copies: dict[int, dict[str, bytes]], made: QuorumCluster
) -> QuorumCluster:
    """A cluster that has yet to start, on copies of another one's folders."""
    again = QuorumCluster(seed, Shape())
    for node_id, host in again.hosts.items():
        host.platter.restore(copies[node_id])
    again.proposers.next = made.proposers.next
    return again


def test_all_put_back_to_one_moment_go_on_from_there() -> None:
    """The way out where a majority is lost: nobody is left who remembers more."""
    made = cluster()
    stop_all(made)
    again = from_copies(6, {n: host.platter.snapshot() for n, host in made.hosts.items()}, made)
    again.start_all()
    assert again.world.run_for(3, lambda: again.serving() is not None)
    again.proposers.start()
    again.world.run_for(2)
    assert "damaged" not in {role(again, n) for n in again.hosts}
    settles(again)


def copies_one_after_another(made: QuorumCluster) -> dict[int, dict[str, bytes]]:
    """What backups of a running cluster are: each of another moment."""
    copies = {}
    for node_id, host in made.hosts.items():
        copies[node_id] = host.platter.snapshot()
        made.world.run_for(1)
    return copies


NEWEST = 3


def from_several_moments(
    seed: int, *, accepted: bool
) -> tuple[QuorumCluster, dict[int, dict[str, bytes]]]:
    """Three folders, the third the newest, in a cluster that has yet to start."""
    made = cluster()
    copies = copies_one_after_another(made)
    again = from_copies(seed, copies, made)
    if accepted:
        for host in again.hosts.values():
            host.platter.put(ACCEPT_LOSS, b"")
    return again, copies


def start_the_newest_first(again: QuorumCluster) -> None:
    """As the runbook says: a bare majority that the newest is in can elect nobody else."""
    for node_id in (NEWEST, 1):
        again.start(node_id)
    assert again.world.run_for(5, lambda: again.serving() == NEWEST)
    again.start(2)
    again.proposers.start()
    again.world.run_for(2)
    settles(again)
    assert not any(ACCEPT_LOSS in host.platter.names for host in again.hosts.values())


def test_folders_of_several_moments_elect_nobody() -> None:
    """The newest remembers the others further than they are."""
    again, _ = from_several_moments(6, accepted=False)
    again.start_all()
    again.world.run_for(5)
    assert [role(again, n) for n in again.hosts] == ["damaged", "damaged", "follower"]
    assert again.serving() is None


@pytest.mark.parametrize("seed", range(6))
def test_folders_of_several_moments_go_on_with_the_newest_when_the_loss_is_accepted(
    seed: int,
) -> None:
    again, _ = from_several_moments(seed, accepted=True)
    start_the_newest_first(again)


@pytest.mark.parametrize("late", [1, 2, NEWEST])
def test_a_folder_of_before_an_accepted_loss_is_found_and_harms_nobody_else(late: int) -> None:
    """What it recalls of the others is of before, too, and held against nobody."""
    again, copies = from_several_moments(6, accepted=True)
    start_the_newest_first(again)
    again.hosts[late].kill()
    again.hosts[late].platter.restore(copies[late])
    again.start(late)
    assert again.world.run_for(1, lambda: role(again, late) == "damaged")
    assert {role(again, n) for n in again.hosts if n != late} <= {"leader", "follower"}
    is_voter_again(again, late)
    settles(again)


@pytest.mark.parametrize("how", ["kill", "lose_power"])
@pytest.mark.parametrize("seed", range(4))
def test_a_loss_that_was_accepted_stays_accepted_however_the_process_ends(
    seed: int, how: str
) -> None:
    made = cluster(seed)
    victim = followers_of(made)[0]
    stop_all(made)
    host = made.hosts[victim]
    flip(host.platter)
    host.platter.put(ACCEPT_LOSS, b"")
    made.start(victim)
    assert ACCEPT_LOSS not in host.platter.names
    getattr(host, how)()
    made.start(victim)
    assert role(made, victim) == "follower", note(made, victim)


@pytest.mark.parametrize("skip", [3, 4])
def test_a_disk_that_fails_meanwhile_ends_the_start_and_leaves_the_file(skip: int) -> None:
    """What was accepted, or the note behind it; and nothing runs on that supposes a start."""
    bench = Bench()
    bench.settle(0.5)
    bench.host.kill()
    bench.host.platter.put(ACCEPT_LOSS, b"")
    bench.host.faults.fail("write", skip, errno.ENOSPC)
    ends: list[str] = []
    start = QuorumNode.start

    def begin(node: QuorumNode) -> None:
        try:
            start(node)
        except OSError as error:
            ends.append(str(error))

    with patched(((QuorumNode, "start", begin),)):
        bench.boot()
    bench.world.run_for(0.1)
    assert "the disk is full" in ends[0]
    assert ACCEPT_LOSS in bench.host.platter.names
    bench.host.faults.succeed()
    bench.host.kill()
    bench.boot()
    assert ACCEPT_LOSS not in bench.host.platter.names
    assert bench.role == "follower"
