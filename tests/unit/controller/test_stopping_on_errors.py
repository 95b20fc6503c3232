"""A controller that stops because of its disk ends, even if the disk refuses the last sync."""

import pytest

from runtime.simulated.disk import SimulatedDisk
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.real_cluster import RealCluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, fill


def test_a_disk_that_refuses_the_last_sync_does_not_keep_the_process_alive() -> None:
    cluster = RealCluster()
    standby = next(n for n in cluster.hosts if n != cluster.shared.leader)
    cluster.hosts[standby].faults.fail("sync", lasting=True)
    stop = cluster.controllers[standby]._fail
    cluster.processes[standby].run(lambda: stop("the disk is gone"))
    assert cluster.stopped == {standby: "the disk is gone"}


def test_a_checkpoint_that_can_not_be_removed_stops_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(**SMALL)
    cluster.online(1)

    def refuse(_: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cluster.shared.disks[3], "unlink", refuse)
    for start in range(0, 80, 10):
        fill(cluster, 10, start=start)
        if 3 not in cluster.stopped:
            checkpoint(cluster, 3)
            cluster.run(0.1)
    assert "Input/output error" in cluster.stopped[3]


def test_a_checkpoint_that_can_not_be_read_at_a_start_stops_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 20)
    checkpoint(cluster, 3)
    cluster.kill(3)
    real = SimulatedDisk.read

    def read(disk: SimulatedDisk, name: str, *where: int) -> bytes:
        if name.startswith("checkpoints/"):
            raise OSError(5, "Input/output error")
        return real(disk, name, *where)

    monkeypatch.setattr(SimulatedDisk, "read", read)
    cluster.start(3)
    cluster.run(0.5)
    assert "Input/output error" in cluster.stopped[3]
