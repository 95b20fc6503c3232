"""A catch-up that begins, or ends, while the present ledger is still being mended or loaded."""

import pytest

from controller.storage import opening
from metadata.records import NoOpRecord
from runtime.loop.slices import run_in_slices
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    damage,
    fill,
    forget_journal,
)


@pytest.fixture
def cluster():
    """Node 3 is down. It lacks entries that its peers' journals hold no more."""
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 5)
    checkpoint(cluster, 3)
    cluster.kill(3)
    fill(cluster, 30, start=10)
    written = checkpoint(cluster, 1)
    cluster.shared.disks[1].unlink(f"checkpoints/{written.name}")
    for old in list_checkpoints(cluster.shared.disks[1]):
        cluster.shared.disks[1].unlink(f"checkpoints/{old.name}")
    forget_journal(cluster)
    return cluster


def assert_follows(cluster, node_id):
    for _ in range(3):
        cluster.write(NoOpRecord())
    assert not cluster.stopped
    assert not cluster.events("batch_skipped")
    cluster.assert_equal()
    assert cluster.ask("GET", "/v1/status", node=node_id)[1]["note"] == ""


def test_a_load_that_a_jump_overtakes_is_given_up(cluster, monkeypatch):
    begun = []

    def counted(clock, work, on_done):
        begun.append(work)
        if len(begun) > 1:
            return run_in_slices(clock, work, on_done)
        return clock.call_later(3.0, lambda: run_in_slices(clock, work, on_done)).cancel

    monkeypatch.setattr(opening, "run_in_slices", counted)
    cluster.start(3)
    cluster.run_until(lambda: cluster.controllers[3].image.offset == cluster.image.offset)
    assert len(begun) == 2
    cluster.run(4.0)
    assert_follows(cluster, 3)


def test_a_jump_that_begins_while_the_ledger_is_mended_takes_place(cluster):
    damage(cluster, 3, -2, position=30)
    cluster.start(3)
    cluster.run(5.0)
    assert cluster.events("ledger_damaged")
    assert_follows(cluster, 3)


def test_a_jump_without_room_waits_for_it_and_is_made(cluster):
    """Seed 54 of the kind `drawn`: a full disk ended the node that could have waited."""
    faults, platter = cluster.faults[3], cluster.platters[3]
    faults.capacity_bytes = platter.used_bytes() + 600
    cluster.start(3)
    cluster.run(10.0)
    assert len(cluster.events("catch_up_without_room")) > 1
    assert not cluster.stopped
    assert "the disk is full" in cluster.ask("GET", "/v1/status", node=3)[1]["note"]
    assert not [n for n in platter.names if n.startswith("incoming/")]
    faults.capacity_bytes = None
    cluster.run(40.0)
    assert_follows(cluster, 3)
