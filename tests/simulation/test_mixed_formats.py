"""Nodes that speak the wire format of release 0.1 only, beside nodes that speak a newer one."""

import dataclasses

import pytest

from quorum.wire.formats import NEWEST_FORMAT, OLDEST_FORMAT
from quorum.wire.frames import FrameKind, encode
from tests.simulation.quorum_cluster import QuorumCluster
from tests.simulation.quorum_scenario import cluster, settles, stop_all

OLD, NEW = OLDEST_FORMAT, NEWEST_FORMAT


def spoken(made: QuorumCluster) -> dict[tuple[int, int], int]:
    """The format of each link, as its two ends know it."""
    return {
        (node_id, replica.node_id): replica.wire_format
        for node_id, owner in made.running()
        for replica in owner.quorum.context.replicas
        if replica.linked
    }


def refused(made: QuorumCluster) -> int:
    return sum(
        count
        for _, owner in made.running()
        for reason, count in owner.quorum.context.counters.items()
        if reason in {"bad_frame", "greeting_refused", "frame_of_a_newer_kind"}
    )


def restart(made: QuorumCluster, node_id: int, newest: int) -> None:
    made.shape = dataclasses.replace(made.shape, formats=(newest,))
    made.hosts[node_id].kill()
    made.world.run_for(0.5)
    made.start(node_id)
    settles(made)
    made.world.run_for(2.0)


@pytest.mark.parametrize("changed", [1, 2, 3])
def test_a_link_speaks_what_both_ends_know_and_a_restart_changes_it(changed: int) -> None:
    """Either end of a link may dial, so the lowest, the middle and the highest id change."""
    made = cluster()
    assert set(spoken(made).values()) == {NEW}
    for newest in (OLD, NEW, OLD):
        restart(made, changed, newest)
        found = spoken(made)
        assert len(found) == 6
        for ends, wire_format in found.items():
            assert wire_format == (newest if changed in ends else NEW), (newest, found)
    assert refused(made) == 0
    stop_all(made)


def test_frames_of_a_newer_release_are_ignored_where_the_link_speaks_so() -> None:
    made = cluster()
    one, two = (made.owners[n].quorum for n in (1, 2))
    directory = two.context.journal.directory_id
    newer = encode(FrameKind.PROBE, two.context.term, directory, 7, "one field more")
    unknown = b"\x93\x63" + newer[2:3] + b"\x01"
    for frame in (newer, unknown):
        made.owners[1].process.run(lambda frame=frame: one.on_frame(2, frame))
    assert one.context.counters.get("bad_frame", 0) == 0
    assert one.context.counters["frame_of_a_newer_kind"] == 1
    restart(made, 2, OLD)
    for frame in (newer, unknown):
        made.owners[1].process.run(lambda frame=frame: one.on_frame(2, frame))
    assert one.context.counters["bad_frame"] == 2
    stop_all(made)


@pytest.mark.parametrize("seed", range(1, 7))
def test_under_faults_with_restarts_that_change_what_a_node_speaks(seed: int) -> None:
    made = cluster(seed=seed, formats=(OLD, NEW))
    dice = made.world.random("restarts")
    for _ in range(6):
        node_id = dice.choice(list(made.hosts))
        if made.hosts[node_id].running:
            made.hosts[node_id].kill()
        made.world.run_for(dice.uniform(0.1, 1.5))
        made.start(node_id)
        made.world.run_for(dice.uniform(0.1, 2.0))
    settles(made)
    made.world.run_for(2.0)
    newest = {n: owner.quorum.config.newest_format for n, owner in made.running()}
    for (one, other), wire_format in spoken(made).items():
        assert wire_format == min(newest[one], newest[other])
    assert refused(made) == 0
    stop_all(made)
