"""Files are fetched from a peer onto a disk that refuses.

A broken disk ends the node. With a full disk, the node waits for room. The disk refuses one
operation, from its first, its second or its sixth call on.
"""

import errno
from collections.abc import Callable

import pytest

from controller.storage.opening import SUSPECT
from ledger.segments import segment_base
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    damage,
    fill,
    forget_journal,
    leave_behind,
    wipe,
)

CHANGES = ("create", "write", "sync", "rename", "unlink", "sync_folder")
SKIPPED = (0, pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow))
"""Calls of an operation that succeed before the disk refuses."""
Scenario = Callable[[Cluster], Callable[[], bool]]
"""Makes node 3 need files; returns a function that says whether node 3 has them."""


def catch_up_by_checkpoint(cluster: Cluster) -> Callable[[], bool]:
    fill(cluster, 3)
    leave_behind(cluster, 40)
    forget_journal(cluster)
    cluster.shared.heal()
    return lambda: bool(cluster.events("catch_up_ready"))


def catch_up_by_segments(cluster: Cluster) -> Callable[[], bool]:
    fill(cluster, 3)
    leave_behind(cluster, 40)
    disk = cluster.shared.disks[1]
    disk.unlink(f"checkpoints/{list_checkpoints(disk)[-1].name}")
    forget_journal(cluster)
    cluster.shared.heal()
    return lambda: bool(cluster.events("catch_up_ready"))


def backfill(cluster: Cluster) -> Callable[[], bool]:
    fill(cluster, 10)
    for _ in range(60):
        cluster.create_topic("again", factor=1)
        cluster.ask("DELETE", "/v1/topics/again")
    checkpoint(cluster, 1)
    forget_journal(cluster)
    cluster.kill(3)
    wipe(cluster, 3)
    cluster.start(3)
    cluster.run_until(lambda: bool(cluster.events("image_loaded")[3:]))
    return lambda: cluster.controllers[3].ledger.log_start == 0


def mend(cluster: Cluster) -> Callable[[], bool]:
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(0.5)
    name = damage(cluster, 3, 1)
    query = {"offset": str(segment_base(name.partition("/")[2])), "maxBytes": "100000"}
    cluster.ask("GET", "/v1/log", node=3, query=query)
    return lambda: bool(cluster.events("ledger_mended"))


def refused(
    scenario: Scenario, operation: str, error: int, skipped: int
) -> tuple[Cluster, Callable[[], bool]]:
    cluster = Cluster(**SMALL)
    cluster.online(1)
    over = scenario(cluster)
    cluster.faults[3].fail(operation, skipped, error, lasting=True)
    return cluster, over


@pytest.mark.parametrize("skipped", SKIPPED)
@pytest.mark.parametrize("operation", [*CHANGES, "read"])
@pytest.mark.parametrize("scenario", [catch_up_by_checkpoint, catch_up_by_segments, backfill, mend])
def test_a_broken_disk_ends_the_node_with_a_clear_word(
    scenario: Scenario, operation: str, skipped: int
) -> None:
    error, word = errno.EROFS, "read-only"
    if operation == "read":
        error, word = errno.EIO, "input/output error"
    cluster, _ = refused(scenario, operation, error, skipped)
    cluster.run(5.0)
    if 3 in cluster.stopped:
        assert word in cluster.stopped[3].lower()
        return
    cluster.faults[3].succeed()
    cluster.run(70.0)
    cluster.assert_equal()


@pytest.mark.parametrize("skipped", SKIPPED)
@pytest.mark.parametrize("operation", CHANGES)
@pytest.mark.parametrize("scenario", [catch_up_by_checkpoint, catch_up_by_segments, backfill, mend])
def test_a_full_disk_is_waited_for(scenario: Scenario, operation: str, skipped: int) -> None:
    cluster, over = refused(scenario, operation, errno.ENOSPC, skipped)
    cluster.run(5.0)
    cluster.faults[3].succeed()
    if 3 in cluster.stopped:
        # Past the catch-up, or by a sync that failed.
        assert "the disk is full; free space" in cluster.stopped[3]
    else:
        cluster.run_until(over, 70.0)


def test_what_a_node_stopped_for_is_read_again_where_the_note_of_it_can_not_be_removed() -> None:
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 8)
    checkpoint(cluster, 3)
    cluster.kill(3)
    newest = max(n for n in cluster.platters[3].names if n.startswith("log/"))
    base = segment_base(newest.partition("/")[2])
    cluster.platters[3].put(SUSPECT, str(base).encode())
    cluster.faults[3].fail("unlink", error=errno.EROFS)
    cluster.start(3)
    cluster.run(1.0)
    cluster.assert_equal()
    assert SUSPECT in cluster.platters[3].names
