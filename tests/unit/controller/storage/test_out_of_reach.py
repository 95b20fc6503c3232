"""A follower whose mark no peer can help it to reach any more: the log there is archived by now."""

import pytest

from ledger.chain import LogMark
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    fill,
    forget_journal,
    leave_behind,
)


@pytest.fixture
def cluster():
    cluster = Cluster(
        archived=True,
        **SMALL,
        archive_keep_bytes=0,
        archive_every_s=1.0,
        session_s=100_000.0,
    )
    cluster.online(1)
    fill(cluster, 3)
    return cluster


def begin_catch_up(cluster):
    """Node 3 begins to fetch files up to the leader's mark, and loses its peers at once."""
    leave_behind(cluster, 30)
    forget_journal(cluster)
    cluster.shared.heal()
    cluster.run(0.02)
    assert cluster.events("catch_up_started")
    cluster.shared.cut(3)
    return LogMark.decode(cluster.shared.nodes[3].catching_up.data).log_end


def archive_past(cluster, end):
    """Nodes 1 and 2 go on until neither their log nor a checkpoint reaches back to an offset."""
    disks = [cluster.shared.disks[n] for n in (1, 2)]
    for number in range(4):
        fill(cluster, 10, start=100 * (number + 1))
        for node_id in (1, 2):
            checkpoint(cluster, node_id)
    cluster.run_until(lambda: min(cluster.controllers[n].ledger.log_start for n in (1, 2)) > end)
    assert all(list_checkpoints(disk)[0].offset > end for disk in disks)
    forget_journal(cluster)


def test_the_leaders_present_mark_replaces_one_that_is_out_of_reach(cluster):
    """It asked its peers for what they had archived, until another leader came."""
    old = begin_catch_up(cluster)
    archive_past(cluster, old)
    cluster.shared.heal()
    cluster.run_until(lambda: cluster.controllers[3].image.offset == cluster.image.offset)
    cluster.run(10.0)
    assert cluster.controllers[3]._storage.history_from == 0
    fill(cluster, 2, start=900)
    cluster.run(0.5)
    assert cluster.controllers[3].image == cluster.image
    assert cluster.controllers[3].ledger.head == cluster.controllers[1].ledger.head
    assert not cluster.stopped
    assert cluster.events("catch_up_started")[0]["target"] == old
    assert cluster.events("catch_up_ready")[0]["target"] > old
