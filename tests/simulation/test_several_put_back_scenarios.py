"""Scenarios of several folders that are put back at once.

Copies of one moment continue. Copies of different moments elect no leader; an operator can go on
from the most complete one with `logberg quorum recover` (`test_recovery_scenarios`).
"""

import pytest

from quorum.folder_opening import ACCEPT_LOSS
from quorum.journal.damage import DamagedError
from quorum.node import QuorumNode
from tests.simulation.patches import patched
from tests.simulation.quorum_cluster import QuorumCluster, Shape
from tests.simulation.quorum_scenario import cluster, role, settles, stop_all
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


def test_folders_of_several_moments_elect_nobody() -> None:
    """The newest remembers the others further than they are."""
    made, copies = cluster(), {}
    for node_id, host in made.hosts.items():
        copies[node_id] = host.platter.snapshot()
        made.world.run_for(1)
    again = from_copies(6, copies, made)
    again.start_all()
    again.world.run_for(5)
    assert [role(again, n) for n in again.hosts] == ["damaged", "damaged", "follower"]
    assert again.serving() is None


def test_the_file_of_an_earlier_release_is_refused_and_says_what_to_do() -> None:
    bench = Bench()
    bench.settle(0.5)
    bench.host.kill()
    bench.host.platter.put(ACCEPT_LOSS, b"")
    ends: list[str] = []
    start = QuorumNode.start

    def begin(node: QuorumNode) -> None:
        try:
            start(node)
        except DamagedError as error:
            ends.append(str(error))

    with patched(((QuorumNode, "start", begin),)):
        bench.boot()
    assert "quorum recover" in ends[0]
    assert ACCEPT_LOSS in bench.host.platter.names
