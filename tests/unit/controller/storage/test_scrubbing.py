"""The scrub finds damage in files that nobody reads, and the node mends it."""

import pytest

from controller.storage.scrubbing import FILE
from ledger.checker import PIECE_BYTES
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.real_cluster import RealCluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint, damage, fill
from tests.unit.controller.test_containment import metrics, status


@pytest.fixture
def cluster():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster, 40)
    checkpoint(cluster, 3)
    return cluster


def files(cluster, node_id, folder):
    return sorted(n for n in cluster.platters[node_id].names if n.startswith(f"{folder}/"))


@pytest.mark.parametrize("which", [0, 1, -2])
def test_a_flipped_byte_that_nobody_reads_is_found_and_mended(cluster, which):
    name = damage(cluster, 3, which)
    cluster.run(70.0)
    assert cluster.events("ledger_damaged")[0]["file"] == name
    assert cluster.events("ledger_mended")
    assert cluster.ledger_files(3) == cluster.ledger_files(2)
    assert metrics(cluster, 3)["logberg_scrub_damage_total"] == 1
    assert status(cluster, 3)["scrubbedMs"] == 0
    # The next pass comes soon, and finds everything sound.
    cluster.run(650.0)
    assert status(cluster, 3)["scrubbedMs"] > 0
    assert metrics(cluster, 3)["logberg_scrub_damage_total"] == 1
    assert cluster.events("scrub_finished")[-1]["damaged"] == 0


def test_what_is_found_while_another_is_mended_is_found_again(cluster):
    for which in (0, 1, 3):
        damage(cluster, 3, which)
    cluster.run(61.0 + 3 * 601.0)
    assert cluster.ledger_files(3) == cluster.ledger_files(2)
    assert status(cluster, 3)["scrubbedMs"] > 0


@pytest.mark.parametrize("how", ["gone", "cut", "another's"])
def test_a_segment_that_is_gone_short_or_another_is_found(cluster, how):
    first, second, *_ = files(cluster, 3, "log")
    platter = cluster.platters[3]
    if how == "gone":
        platter.remove(second)
    elif how == "cut":
        platter.cut(second, 300)
    else:
        platter.put(second, bytes(platter.names[first].content))
    cluster.run(70.0)
    assert cluster.events("ledger_mended")
    assert cluster.ledger_files(3) == cluster.ledger_files(2)


def test_the_same_bytes_twice_in_another_history_are_found_by_the_chain(cluster):
    """Every checksum is right. Only the hash that the next segment names shows the difference."""
    other = Cluster(seed=2, **SMALL)
    other.online(1)
    fill(other, 40, start=500)
    name = files(cluster, 3, "log")[1]
    theirs = files(other, 3, "log")[1]
    cluster.platters[3].put(name, bytes(other.platters[3].names[theirs].content))
    cluster.run(70.0)
    assert cluster.events("ledger_mended")
    assert cluster.ledger_files(3) == cluster.ledger_files(2)


def test_a_rotten_checkpoint_is_put_aside_and_another_is_written(cluster):
    fill(cluster, 5, start=100)
    [written] = list_checkpoints(cluster.shared.disks[3])
    name = f"checkpoints/{written.name}"
    cluster.platters[3].flip_bit(name, len(cluster.platters[3].names[name].content) // 2)
    cluster.run(70.0)
    assert cluster.events("checkpoint_damaged")[0]["file"] == name
    [again] = list_checkpoints(cluster.shared.disks[3])
    assert again.offset > written.offset
    assert name + ".damaged" in cluster.platters[3].names
    assert status(cluster, 3)["newestSnapshot"] == str(again)


def test_one_bad_read_is_not_believed(cluster):
    name = files(cluster, 3, "log")[1]
    disk = cluster.shared.disks[3]
    read, bad = disk.read, [1]

    def reads_badly_once(asked, position=0, length=None):
        data = read(asked, position, length)
        if asked == name and length == PIECE_BYTES and bad:
            bad.pop()
            return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
        return data

    disk.read = reads_badly_once
    cluster.run(70.0)
    assert not bad
    assert not cluster.events("ledger_damaged")
    assert len(cluster.events("scrub_finished")) == 3


def test_a_lone_node_says_so_and_goes_on():
    cluster = Cluster(nodes=1, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    checkpoint(cluster, 1)
    damage(cluster, 1, 1)
    cluster.run(70.0)
    assert cluster.events("ledger_damaged")
    assert not cluster.stopped
    assert "no peer" in status(cluster, 1)["repairs"][-1]
    assert cluster.ask("GET", "/v1/topics")[0] == 200


def test_it_reads_no_faster_than_it_may_and_then_rests():
    cluster = Cluster(scrub_bytes_per_s=500, scrub_interval_s=600.0, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    cluster.run(90.0)
    read = metrics(cluster, 2)["logberg_scrub_bytes_total"]
    assert 0 < read <= 30 * 500 + 4096
    assert status(cluster, 2)["scrubbedMs"] == 0
    cluster.run(300.0)
    assert status(cluster, 2)["scrubbedMs"] > 0
    whole = metrics(cluster, 2)["logberg_scrub_bytes_total"]
    cluster.run(300.0)
    assert metrics(cluster, 2)["logberg_scrub_bytes_total"] == whole
    cluster.run(400.0)
    assert metrics(cluster, 2)["logberg_scrub_bytes_total"] > whole


def test_it_goes_on_where_it_stopped():
    cluster = Cluster(scrub_bytes_per_s=100, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    first = files(cluster, 2, "log")[0]
    cluster.run(60.0 + 125.0)
    assert FILE in cluster.platters[2].names
    cluster.kill(2)
    cluster.start(2)
    cluster.run(1.0)  # the node reads the whole log to load its image
    read = []
    disk = cluster.shared.disks[2]
    real = disk.read

    def noting(name, position=0, length=None):
        read.append(name)
        return real(name, position, length)

    disk.read = noting
    cluster.run(61.0 + 50.0)
    scrubbed = [name for name in read if name.startswith("log/")]
    assert scrubbed
    assert first not in scrubbed


def test_a_pass_that_found_damage_before_a_restart_is_not_one_in_which_all_was_sound():
    cluster = Cluster(nodes=1, scrub_bytes_per_s=300, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    checkpoint(cluster, 1)
    cluster.platters[1].flip_bit(files(cluster, 1, "log")[0], 700)
    cluster.run(60.0 + 30.0)
    assert metrics(cluster, 1)["logberg_scrub_damage_total"] == 1
    cluster.kill(1)
    cluster.start(1)
    cluster.run(0.5)
    cluster.lead(1)
    cluster.run(60.0 + 400.0)
    assert cluster.events("scrub_finished")[-1]["damaged"] == 1
    assert status(cluster, 1)["scrubbedMs"] == 0


def test_never_means_never():
    cluster = Cluster(scrub_bytes_per_s=0, **SMALL)
    cluster.online(1)
    fill(cluster, 40)
    damage(cluster, 2, 1)
    cluster.run(300.0)
    assert not cluster.events("ledger_damaged")
    assert metrics(cluster, 2)["logberg_scrub_bytes_total"] == 0


def test_on_the_real_quorum_too_and_the_leader_leads_on():
    cluster = RealCluster(tail_bytes=1 << 20, ledger_segment_bytes=4096)
    cluster.online(1)
    fill(cluster, 40)
    leader = cluster.shared.leader
    platter = cluster.hosts[leader].platter
    platter.flip_bit(min(n for n in platter.names if n.startswith("log/")), 700)
    cluster.run(63.0)
    assert cluster.events("ledger_mended")
    assert cluster.shared.leader == leader
    assert cluster.ask("GET", "/v1/log", query={"offset": "0", "maxBytes": "100000"})[0] == 200


@pytest.mark.slow
def test_the_journal_is_read_too_and_the_node_goes_on():
    cluster = RealCluster(tail_bytes=1 << 20, ledger_segment_bytes=4096)
    cluster.online(1)
    fill(cluster, 60)
    victim = next(n for n in cluster.hosts if n != cluster.shared.leader)
    platter = cluster.hosts[victim].platter
    oldest = min(n for n in platter.names if n.endswith(".wal"))
    platter.flip_bit(oldest, len(platter.names[oldest].content) // 2)
    cluster.run(70.0)
    assert oldest in cluster.events("journal_rotten")[0]["what"]
    assert not cluster.stopped
