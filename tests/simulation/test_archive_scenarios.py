"""Segments that move to an archive while faults strike the nodes, the network and the archive.

The kind `archive` of the cluster's seeds runs more of them (`make seeds KIND=archive`).
"""

import random
from functools import partial
from typing import Any

import pytest

from ledger.chain import LogMark
from runtime.simulated.archive import SimulatedArchive, flipped, shortened
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.world import World
from tests.simulation.archiving import ACTS, ArchivedRun, read_whole
from tests.simulation.cluster import Cluster
from tests.simulation.seeds import run_seed, shape_of

pytestmark = pytest.mark.simulation


def test_every_fault_of_the_archive_strikes_and_segments_are_read_back_meanwhile() -> None:
    """In a few seeds; with one, some fault may be missing."""
    facts: Any = sum((_facts(seed) for seed in (1, 2)), start=_facts(3))
    assert {act for act in ACTS if not facts[act]} == set()
    assert facts["segments that left nodes"] > 20
    assert facts["read back"] > 20
    assert facts["could not be read back"] > 0
    assert facts["a mangled copy is replaced"] > 0


def _facts(seed: int) -> Any:
    outcome = run_seed(seed, kind="archive", operations=())
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    return outcome.facts


def test_a_node_that_lost_its_disk_finds_its_history_in_the_archive() -> None:
    shape, schedule = shape_of(5, "archive", 10.0, ())
    shape.broker_fault_schedule = 0
    cluster = Cluster(5, shape)
    run = ArchivedRun(cluster)
    nemesis = Nemesis(cluster, schedule)
    cluster.start_all()
    assert cluster.world.run_for(10, lambda: cluster.leader() is not None)
    nemesis.start()
    run.start()
    cluster.world.run_for(shape.faults_s)
    nemesis.heal()
    run.faults.end()
    cluster.healed = True
    cluster.world.run_for(5)
    cluster.busy = False
    assert cluster.world.run_for(90, cluster.at_rest), cluster.unrest()
    assert run.judge()["segments that left nodes"] > 5
    whole = read_whole(cluster, 1)
    host = cluster.hosts[3]
    host.kill()
    host.platter.names.clear()
    cluster.start(3)
    end = cluster.controllers[1].image.offset
    assert cluster.world.run_for(60, lambda: cluster.controllers[3].image.offset >= end)
    assert cluster.world.run_for(60, run.all_known)
    assert read_whole(cluster, 3)[: len(whole)] == whole


@pytest.mark.parametrize("tail_bytes", [4_000, 40_000])
def test_a_node_catches_up_although_its_peers_archived_what_it_was_offered(tail_bytes: int) -> None:
    """It asked for files that were gone, until the leader changed (seed 1014)."""
    cluster, laggard = _with_a_laggard(tail_bytes)
    world = cluster.world
    cluster.start(laggard)
    controller: Any = cluster.controllers[laggard]
    held: list[Any] = []
    quorum = controller.quorum
    answered, quorum.list_files = quorum.list_files, lambda *asked: held.append(asked)
    assert world.run_for(5, lambda: bool(held))
    leader, target = cluster.leader(), LogMark.decode(quorum.guard.catch_up.pending.data).log_end
    assert world.run_for(200, lambda: _begins_past(cluster, laggard, target))
    quorum.list_files = answered
    for asked in held:
        cluster.hosts[laggard].process.run(partial(answered, *asked))
    cluster.busy = False
    _must_become_equal(cluster, laggard)
    assert cluster.leader() == leader, "another leader would have helped"


@pytest.mark.parametrize("tail_bytes", [4_000, 40_000])
def test_a_node_that_ended_behind_the_fetched_checkpoint_catches_up(tail_bytes: int) -> None:
    """Nobody had a newer checkpoint, and it didn't count its own one."""
    cluster, laggard = _with_a_laggard(tail_bytes)
    cluster.busy = False
    cluster.world.run_for(10)
    before = set(cluster.hosts[laggard].platter.names)
    cluster.start(laggard)
    host = cluster.hosts[laggard]
    assert cluster.world.run_for(
        10, lambda: any(map(_is_checkpoint, {*host.platter.names} - before))
    )
    host.kill()
    cluster.world.run_for(1)
    cluster.start(laggard)
    _must_become_equal(cluster, laggard)


def test_a_new_disk_catches_up_although_the_mark_is_older_than_every_checkpoint() -> None:
    cluster, laggard = _with_a_laggard(40_000)
    cluster.hosts[laggard].platter.names.clear()
    cluster.start(laggard)
    cluster.world.run_for(5)
    cluster.busy = False
    _must_become_equal(cluster, laggard)


def _with_a_laggard(tail_bytes: int) -> tuple[Cluster, int]:
    """Return a cluster and a node that has ended, whose next log and state the others archived.

    With more of `tail_bytes` than there is log behind three checkpoints, as by default, the mark
    of the leader is older than its checkpoints.
    """
    shape, _ = shape_of(5, "archive", 10.0, ())
    shape.broker_fault_schedule, shape.tail_bytes = 0, tail_bytes
    cluster = Cluster(5, shape)
    cluster.start_all()
    assert cluster.world.run_for(10, lambda: cluster.leader() is not None)
    laggard = next(n for n in cluster.hosts if n != cluster.leader())
    cluster.hosts[laggard].kill()
    assert cluster.world.run_for(200, lambda: _begins_past(cluster, laggard))
    return cluster, laggard


def _is_checkpoint(name: str) -> bool:
    return name.endswith(".checkpoint")


def _must_become_equal(cluster: Cluster, laggard: int) -> None:
    assert cluster.world.run_for(30, cluster.at_rest), cluster.unrest()
    storage: Any = cluster.controllers[laggard]._storage
    assert cluster.world.run_for(30, lambda: storage.history_from == 0)
    assert read_whole(cluster, laggard) == read_whole(cluster, cluster.leader() or 0)


def _begins_past(cluster: Cluster, laggard: int, end: int = 0) -> bool:
    """The others have neither log nor checkpoint at the laggard's end, nor at another offset."""
    end = max(end, cluster.controllers[laggard].image.offset)
    others = [n for n in cluster.hosts if n != laggard]
    for node_id in others:
        files: Any = cluster.controllers[node_id]._storage.files
        checkpoints = files.store.list()
        if files.ledger.log_start <= end or not checkpoints or checkpoints[0].offset <= end:
            return False
    return True


def test_what_is_mangled_is_other_than_what_was_written_until_it_is_repaired() -> None:
    archive = SimulatedArchive(World(1))
    archive.mangles = True
    content = bytes(range(200))
    for number in range(20):
        writer = archive.create(f"{number}")
        writer.write(content)
        writer.close()
        assert archive.files[f"{number}"] != content
    archive.repair("3")
    assert archive.files["3"] == content
    assert "3" not in archive.mangled


@pytest.mark.parametrize("seed", range(50))
def test_wrong_bits_and_lost_pieces_differ_from_what_was_there(seed: int) -> None:
    data, dice = bytes(random.Random(seed).randbytes(1 + seed % 7)), random.Random(seed)
    assert flipped(data, dice) != data
    assert len(flipped(data, dice)) == len(data)
    assert len(shortened(data, dice)) < len(data)
