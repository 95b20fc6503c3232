"""Segments that move to an archive while faults strike the nodes, the network and the archive.

The kind `archive` of the cluster's seeds runs more of them (`make seeds KIND=archive`).
"""

import random
from typing import Any

import pytest

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
