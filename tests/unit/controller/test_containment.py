"""A node with a wrong or damaged state reports it, repairs it if it can, and is not believed."""

import errno

import pytest

from controller.storage.opening import SUSPECT
from metadata.image import MetadataDelta
from metadata.records import TopicRecord
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, corrupt, damage, fill


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    return cluster


def status(cluster, node_id):
    return cluster.ask("GET", "/v1/status", node=node_id)[1]


def metrics(cluster, node_id):
    replies = cluster.send("GET", "/metrics", node=node_id)
    cluster.run(0.01)
    lines = replies[0].body.decode().splitlines()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}


def read_old(cluster, node_id):
    """Read batches of the damaged segment."""
    query = {"offset": "50", "maxBytes": "100000"}
    return cluster.ask("GET", "/v1/log", node=node_id, query=query)[0]


def damaged_while_running(cluster, node_id):
    fill(cluster, 40)
    checkpoint(cluster, node_id)
    cluster.kill(node_id)
    cluster.start(node_id)  # so that nothing old is in memory
    cluster.run(0.5)
    name = damage(cluster, node_id, 1)
    assert read_old(cluster, node_id) == 503
    return name


# -- what is said -------------------------------------------------------------------------------


def test_a_mended_segment_stands_in_status_and_metrics(cluster):
    assert status(cluster, 3)["repairs"] == []
    name = damaged_while_running(cluster, 3)
    cluster.run(1.0)
    found, mended = status(cluster, 3)["repairs"]
    assert "ledger damaged" in found
    assert name in found
    assert "ledger repaired" in mended
    figures = metrics(cluster, 3)
    assert figures['logberg_damage_found_total{part="ledger"}'] == 1
    assert figures['logberg_damage_repaired_total{part="ledger"}'] == 1
    assert figures['logberg_damage_found_total{part="checkpoint"}'] == 0
    assert figures["logberg_state_diverged"] == 0


def test_a_damaged_checkpoint_stands_there_too(cluster):
    fill(cluster)
    written = checkpoint(cluster, 2)
    cluster.kill(2)
    inode = cluster.platters[2].names[f"checkpoints/{written.name}"]
    inode.content[len(inode.content) // 2] ^= 1
    cluster.start(2)
    cluster.run(1.0)
    assert metrics(cluster, 2)['logberg_damage_found_total{part="checkpoint"}'] == 1
    assert "checkpoint damaged" in status(cluster, 2)["repairs"][0]


# -- a disk that refuses what mends it ----------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "error"),
    [("rename", errno.EIO), ("sync", errno.EIO), ("sync_folder", errno.EIO)],
)
def test_mending_tries_again_when_the_disk_refuses_once(cluster, operation, error):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(0.5)
    name = damage(cluster, 3, 1)
    whole = cluster.ledger_files(2)
    cluster.faults[3].fail(operation, error=error)
    assert read_old(cluster, 3) == 503
    cluster.run(0.5)
    assert cluster.events("mending_refused")
    assert "tried again" in status(cluster, 3)["note"]
    cluster.run(3.0)
    assert cluster.events("ledger_mended")
    assert cluster.holds(3, whole)
    assert name in whole
    assert status(cluster, 3)["note"] == ""
    assert read_old(cluster, 3) == 200


def test_mending_goes_on_trying_ever_more_slowly(cluster):
    fill(cluster, 40)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(0.5)
    damage(cluster, 3, 1)
    cluster.faults[3].fail("rename", error=errno.EROFS, lasting=True)
    assert read_old(cluster, 3) == 503
    cluster.run(600.0)
    assert 10 <= len(cluster.events("mending_refused")) <= 20
    cluster.faults[3].succeed()
    cluster.run(61.0)
    assert cluster.events("ledger_mended")
    assert read_old(cluster, 3) == 200


def test_a_segment_that_is_mended_at_the_start_is_tried_again_too(cluster):
    fill(cluster, 40)
    written = checkpoint(cluster, 3)
    cluster.shared.disks[3].unlink(f"checkpoints/{written.name}")
    cluster.kill(3)
    damage(cluster, 3, -2)
    cluster.faults[3].fail("rename")
    cluster.start(3)
    cluster.run(5.0)
    assert cluster.events("mending_refused")
    cluster.create_topic("after", factor=1)
    cluster.assert_equal()


# -- a state that is not the others' ---------------------------------------------------------------


def forget_the_difference(cluster, node_id):
    """Make the state hashes equal again, as when the wrong value is overwritten."""
    applier = cluster.controllers[node_id]._replica.applier
    applier.image = cluster.image


def test_a_state_that_was_wrong_once_is_not_served_again_in_this_life(cluster):
    corrupt(cluster, 3)
    fill(cluster, 3)
    cluster.run(0.5)
    assert "majority" in status(cluster, 3)["note"]
    forget_the_difference(cluster, 3)
    fill(cluster, 5, start=50)
    cluster.run(1.0)
    assert cluster.controllers[3].image.state_hash == cluster.image.state_hash
    assert cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})[0] == 503
    assert metrics(cluster, 3)["logberg_state_diverged"] == 1
    assert metrics(cluster, 3)['logberg_damage_found_total{part="state"}'] == 1
    cluster.kill(3)
    cluster.start(3)
    cluster.run(1.0)
    fill(cluster, 3, start=80)
    cluster.run(0.5)
    assert cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})[0] == 200
    cluster.assert_equal()


def test_a_checkpoint_of_a_wrong_state_is_not_loaded_again(cluster):
    """The checkpoint is valid in itself. Only a comparison with the others shows the error."""
    fill(cluster, 5)
    sound = checkpoint(cluster, 3)
    fill(cluster, 5, start=20)
    cluster.run(0.5)
    applier = cluster.controllers[3]._replica.applier
    image = applier.image
    delta = MetadataDelta(image)
    delta.replay(TopicRecord("never-created", b"n" * 16), image.offset)
    delta.finish_batch(image.offset, image.epoch, image.timestamp_ms)
    applier.image = delta.apply()
    wrong = checkpoint(cluster, 3)
    fill(cluster, 3, start=40)
    cluster.run(0.5)
    assert "majority" in status(cluster, 3)["note"]
    assert list_checkpoints(cluster.shared.disks[3]) == [sound]
    assert cluster.events("checkpoint_distrusted")[-1]["checkpoint"] == str(wrong)
    cluster.kill(3)
    cluster.start(3)
    cluster.run(1.0)
    fill(cluster, 3, start=60)
    cluster.run(0.5)
    assert cluster.ask("GET", "/v1/topics", node=3, query={"consistency": "stale"})[0] == 200
    cluster.assert_equal()


def test_a_wrong_node_writes_no_checkpoint():
    cluster = Cluster(checkpoint_bytes=4_000, **SMALL)
    cluster.online(1)
    corrupt(cluster, 3)
    fill(cluster, 60)
    cluster.run(2.0)
    assert list_checkpoints(cluster.shared.disks[2])
    assert list_checkpoints(cluster.shared.disks[3]) == []


# -- damage is not copied -------------------------------------------------------------------------


def too_far_behind(cluster):
    """Controller 3 must fetch files from controller 1, which leads."""
    cluster.shared.cut(3)
    fill(cluster, 40)
    checkpoint(cluster, 1)
    for written in list_checkpoints(cluster.shared.disks[1]):
        cluster.shared.disks[1].unlink(f"checkpoints/{written.name}")
    cluster.shared.compacted = cluster.shared.manifests[1].index


@pytest.mark.parametrize("which", [1, -2])
def test_a_jump_takes_nothing_from_a_damaged_source_and_asks_another(cluster, which):
    too_far_behind(cluster)
    sound = cluster.ledger_files(2)
    damage(cluster, 1, which)
    cluster.shared.heal()
    cluster.run(5.0)
    assert cluster.events("catch_up_refused")
    assert cluster.ledger_files(3) == sound
    fill(cluster, 2, start=100)
    cluster.run(0.5)
    assert cluster.controllers[3].image.offset == cluster.image.offset


def test_each_holds_another_part_of_history_well_and_all_are_mended(cluster):
    """Every node has damage, but each record is intact on one of them."""
    fill(cluster, 40)
    for node_id in (1, 2, 3):
        checkpoint(cluster, node_id)
    whole = cluster.ledger_files(1)
    for node_id in (1, 2, 3):
        damage(cluster, node_id, node_id)
    cluster.run(70.0)
    assert len(cluster.events("ledger_mended")) == 3
    for node_id in (1, 2, 3):
        files = cluster.ledger_files(node_id)
        assert all(files[name] == data for name, data in whole.items() if name != max(whole))


def test_the_newest_segment_damaged_while_running_stops_the_node_and_a_start_mends_it(cluster):
    fill(cluster, 43)
    checkpoint(cluster, 3)
    cluster.kill(3)
    cluster.start(3)  # so that nothing of it is in memory
    cluster.run(0.5)
    whole = cluster.ledger_files(3)
    name = max(whole)
    cluster.platters[3].flip_bit(name, 300)
    query = {"offset": str(int(name[4:24])), "maxBytes": "100000"}
    assert cluster.ask("GET", "/v1/log", node=3, query=query)[0] == 503
    cluster.run(0.5)
    assert "start again to mend it" in cluster.stopped[3]
    cluster.kill(3)
    cluster.start(3)
    cluster.run(3.0)
    assert cluster.events("ledger_mended")
    assert SUSPECT not in cluster.platters[3].names
    assert cluster.holds(3, whole)
    fill(cluster, 2, start=100)
    cluster.assert_equal()


@pytest.mark.parametrize("how", ["flipped", "another cluster's", "newer than the log"])
def test_a_checkpoint_that_can_not_be_is_not_loaded(cluster, how):
    fill(cluster, 20)
    written = checkpoint(cluster, 3)
    cluster.kill(3)
    platter = cluster.platters[3]
    name = f"checkpoints/{written.name}"
    if how == "flipped":
        platter.flip_bit(name, 200)
    else:
        other = Cluster(seed=9, **SMALL)
        other.online(1)
        fill(other, 40, start=500)
        theirs = checkpoint(other, 3)
        data = bytes(other.platters[3].names[f"checkpoints/{theirs.name}"].content)
        if how == "another cluster's":
            platter.put(name, data)
        else:
            platter.put(f"checkpoints/{theirs.name}", data)
    cluster.start(3)
    cluster.run(2.0)
    assert cluster.events("image_loaded")
    if how == "newer than the log":
        fill(cluster, 30, start=200)
        cluster.run(0.5)
        assert "of another history" in cluster.stopped[3]
        assert f"checkpoints/{theirs.name}.damaged" in platter.names
        cluster.kill(3)
        cluster.start(3)
    else:
        assert cluster.events("checkpoint_damaged")
    fill(cluster, 2, start=100)
    cluster.run(1.0)
    cluster.assert_equal()


def test_a_checkpoint_of_another_history_is_told_by_the_chain(cluster):
    """The checkpoint of another cluster with the same id: all its checksums are right."""
    fill(cluster, 40)
    written = checkpoint(cluster, 3)
    cluster.kill(3)
    other = Cluster(seed=9, **SMALL)
    other.online(1)
    fill(other, 20, start=500)
    theirs = checkpoint(other, 3)
    assert theirs.offset < written.offset
    platter = cluster.platters[3]
    platter.remove(f"checkpoints/{written.name}")
    content = other.platters[3].names[f"checkpoints/{theirs.name}"].content
    platter.put(f"checkpoints/{theirs.name}", bytes(content))
    cluster.start(3)
    cluster.run(2.0)
    assert "another history" in cluster.events("checkpoint_damaged")[0]["reason"]
    fill(cluster, 2, start=100)
    cluster.assert_equal()
