"""A controller that stops because of its disk ends, also when the disk refuses the last sync."""

from tests.unit.controller.real_cluster import RealCluster


def test_a_disk_that_refuses_the_last_sync_does_not_keep_the_process_alive() -> None:
    cluster = RealCluster()
    standby = next(n for n in cluster.hosts if n != cluster.shared.leader)
    cluster.hosts[standby].faults.fail("sync", lasting=True)
    stop = cluster.controllers[standby]._fail
    cluster.processes[standby].run(lambda: stop("the disk is gone"))
    assert cluster.stopped == {standby: "the disk is gone"}
