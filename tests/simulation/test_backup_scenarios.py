"""Backups that are made while faults strike, and what is restored from them."""

from dataclasses import replace

import pytest

from ledger.reader import LedgerReader
from logberg.backups.reading import BackupFile
from logberg.backups.restoring import CutPoint
from runtime.simulated.nemesis import Nemesis
from tests.simulation.backups import Backups, restored_cluster
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation

SHAPE = Shape(faults_s=12.0, broker_fault_schedule=0)
ALONE = replace(SHAPE, brokers=0)
REST_S = 60.0


def faulty_run(seed: int) -> tuple[Cluster, Backups]:
    """A cluster that came to rest after faults, during which backups were made."""
    cluster = Cluster(seed, SHAPE)
    nemesis = Nemesis(cluster)
    cluster.start_all()
    assert cluster.world.run_for(10, lambda: cluster.leader() is not None)
    cluster.world.run_for(1)
    backups = Backups(cluster)
    backups.start()
    nemesis.start()
    cluster.world.run_for(SHAPE.faults_s)
    nemesis.heal()
    cluster.healed = True
    cluster.broker_faults.heal()
    cluster.world.run_for(3)
    cluster.busy = False
    assert cluster.world.run_for(REST_S, cluster.at_rest), cluster.unrest()
    assert cluster.stopped == []
    return cluster, backups


def serves(cluster: Cluster) -> None:
    """The cluster elects a leader, acknowledges changes and comes to rest."""
    cluster.start_all()
    # The topics of the cluster before are there: these administrators make others.
    cluster.admins.number = 100_000
    assert cluster.world.run_for(30, lambda: cluster.admins.counts.acknowledged > 5)
    cluster.busy = False
    assert cluster.world.run_for(REST_S, cluster.at_rest), cluster.unrest()
    assert cluster.stopped == []


def reader_of(cluster: Cluster, node_id: int) -> LedgerReader:
    return LedgerReader(cluster.hosts[node_id].files())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_backup_under_faults_is_a_prefix_of_the_history(seed: int) -> None:
    """It holds all that was committed before its end, and nothing else."""
    cluster, backups = faulty_run(seed)
    assert len(backups.made) > 5, backups.refused
    reader = reader_of(cluster, 1)
    for name, facts in backups.made:
        end = facts.header.end
        assert reader.hash_at(end.log_end) == end.head, name
        assert facts.header.start.log_end == 0 or facts.checkpoint is not None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cluster_goes_on_from_a_backup_that_was_made_under_faults(seed: int) -> None:
    cluster, backups = faulty_run(seed)
    name, facts = backups.made[len(backups.made) // 2]
    file: BackupFile = backups.content(name)
    again, found = restored_cluster(seed + 100, file, SHAPE)
    assert found.kept == facts.header.end
    serves(again)
    for node_id in again.hosts:
        old, new = reader_of(cluster, 1), reader_of(again, node_id)
        assert new.hash_at(found.kept.log_end) == old.hash_at(found.kept.log_end)
        assert new.hash_at(found.end.log_end) == found.end.head
        image = again.controllers[node_id].image
        assert image.quorum.generation == found.generation == 2
        assert image.epoch > found.end.epoch > found.kept.epoch + 1000


@pytest.mark.parametrize("seed", [4])
def test_a_cluster_goes_on_from_a_moment_in_a_backup(seed: int) -> None:
    _, backups = faulty_run(seed)
    name, facts = backups.made[-1]
    offset = facts.header.end.log_end // 2
    again, found = restored_cluster(
        seed + 100, backups.content(name), SHAPE, CutPoint(offset=offset)
    )
    assert offset <= found.kept.log_end < facts.header.end.log_end
    serves(again)


def in_two_generations(cluster: Cluster) -> None:
    """Nobody asks, and two histories are no violation: this cluster's folders are of both."""
    cluster.busy = False
    cluster.invariants._check_controller = lambda *_: None


@pytest.mark.parametrize("seed", [5])
def test_a_controller_of_the_generation_before_never_gets_in(seed: int) -> None:
    """Its journal names other voters, so no restored controller opens a link with it."""
    cluster, backups = faulty_run(seed)
    name, _ = backups.made[0]
    again, found = restored_cluster(seed + 100, backups.content(name), ALONE)
    again.hosts[3].platter.restore(cluster.hosts[3].platter.snapshot())
    in_two_generations(again)
    again.start_all()
    assert again.world.run_for(20, lambda: again.leader() in (1, 2))
    again.world.run_for(5)
    status = again.controllers[3].quorum.status()
    assert status.leader is None
    assert status.epoch < found.end.epoch
    for node_id in (1, 2):
        assert again.controllers[node_id].image.quorum.generation == 2
        assert again.controllers[node_id].image.epoch > found.end.epoch
    assert again.controllers[3].image.quorum.generation == 1


@pytest.mark.parametrize("seed", [6])
def test_three_folders_of_the_generation_before_elect_nobody_among_the_restored(seed: int) -> None:
    """Two nodes of the generation before meet one of the new: each side keeps to its own."""
    cluster, backups = faulty_run(seed)
    name, _ = backups.made[-1]
    again, found = restored_cluster(seed + 100, backups.content(name), ALONE)
    for node_id in (2, 3):
        again.hosts[node_id].platter.restore(cluster.hosts[node_id].platter.snapshot())
    in_two_generations(again)
    again.start_all()
    again.world.run_for(8)
    assert again.leader() in (2, 3), "the generation before still has its majority"
    assert again.controllers[1].image.epoch == found.end.epoch
    assert not again.controllers[1].active
