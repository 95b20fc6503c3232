"""A damaged or missing segment is fetched again from a peer."""

import pytest

from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, damage, fill


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


@pytest.mark.parametrize("which", [0, 2, -2])
@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_a_damaged_segment_is_fetched_again_at_start(cluster, which, how):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.shared.disks[3].unlink(
        f"checkpoints/{list_checkpoints(cluster.shared.disks[3])[-1].name}"
    )
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    name = damage(cluster, 3, which)
    if how == "gone":
        del cluster.platters[3].names[name]
    cluster.start(3)
    cluster.run(5.0)
    backfilled = which == 0 and how == "gone"
    assert cluster.events("history_backfilled" if backfilled else "ledger_mended")
    assert cluster.holds(3, whole)
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


@pytest.mark.parametrize("gone", [[1, 2], [-3, -2], [1, 3], [0, 1, 2, 3, 4]])
def test_several_segments_that_are_gone_are_fetched_again(cluster, gone):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.shared.disks[3].unlink(
        f"checkpoints/{list_checkpoints(cluster.shared.disks[3])[-1].name}"
    )
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    names = sorted(n for n in cluster.platters[3].names if n.startswith("log/"))
    for which in gone:
        del cluster.platters[3].names[names[which]]
    cluster.start(3)
    cluster.run(5.0)
    assert cluster.holds(3, whole)
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


def test_segments_that_go_while_the_node_runs_are_served_again(cluster):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    whole = cluster.ledger_files(3)
    cluster.kill(3)
    names = sorted(n for n in cluster.platters[3].names if n.startswith("log/"))
    for name in names[1:3]:
        del cluster.platters[3].names[name]
    cluster.start(3)
    cluster.run(1.0)
    query = {"offset": str(int(names[1][4:24])), "maxBytes": "1"}
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 503
    cluster.run(3.0)
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 200
    assert cluster.holds(3, whole)
    cluster.assert_equal()


def test_a_byte_that_flips_while_the_node_runs_is_mended_and_never_served(cluster):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)  # so that nothing old is in memory
    cluster.run(0.5)
    name = damage(cluster, 3, 1)
    query = {"offset": "50", "maxBytes": "100000"}
    status, reply = cluster.ask("GET", "/v1/log", node=3, query=query)
    assert (status, reply["code"]) == (503, "STORAGE_ERROR")
    assert name in reply["message"]
    cluster.run(1.0)
    assert cluster.events("ledger_mended")
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 200
    cluster.assert_equal()


def test_a_damaged_ledger_without_peers_is_an_error_that_says_what_to_do():
    cluster = Cluster(nodes=1, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    written = checkpoint(cluster, 1)
    cluster.shared.disks[1].unlink(f"checkpoints/{written.name}")
    cluster.kill(1)
    name = damage(cluster, 1, -2)
    cluster.start(1)
    cluster.run(1.0)
    assert name in cluster.stopped[1]
    assert "restore the file" in cluster.stopped[1]
