"""Segments that move to the archive, and the history that is read back from there."""

from base64 import b64decode

import msgspec
import pytest

from ledger.batch import parse
from ledger.receipts import RECEIPTS_FOLDER, parse_receipt
from ledger.segments import segment_bases
from runtime.simulated.process import Death
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    damage,
    fill,
    forget_journal,
    wipe,
)

SETTINGS = {
    **SMALL,
    "archive_keep_bytes": 0,
    "archive_every_s": 1.0,
    "archive_cache_bytes": 10_000,
    "archive_wait_s": 5.0,
    "session_s": 100_000.0,
}


def world(nodes=3, **more):
    """A cluster with a long log, of which nothing is archived yet."""
    cluster = Cluster(nodes, archived=True, **{**SETTINGS, **more})
    cluster.online(1)
    fill(cluster)
    return cluster


def two_checkpoints(cluster, nodes=None):
    for node_id in nodes or cluster.controllers:
        checkpoint(cluster, node_id)
    fill(cluster, 2, start=len(cluster.image.topics.by_id) + 500)
    for node_id in nodes or cluster.controllers:
        checkpoint(cluster, node_id)


def local(cluster, node_id):
    names = [n for n in cluster.platters[node_id].names if n.startswith("log/")]
    return segment_bases(names)


def receipts(cluster, node_id):
    disk = cluster.shared.disks[node_id]
    found = (disk.read(f"{RECEIPTS_FOLDER}/{n}") for n in disk.list(RECEIPTS_FOLDER))
    return [parse_receipt(data) for data in found if data[:4] == b"QRTA"]


@pytest.fixture
def cluster():
    cluster = world()
    cluster.whole = {n: cluster.ledger_files(n) for n in cluster.controllers}
    cluster.bytes = [batch.encoded for batch in cluster.batches()]
    two_checkpoints(cluster)
    cluster.run_until(lambda: all(local(cluster, n)[0] > 0 for n in cluster.controllers))
    cluster.run(10.0)
    return cluster


def read_log(cluster, node, offset=0):
    """Return the batches that `/v1/log` gives from an offset on, as they are on disk."""
    found = []
    while True:
        status, reply = cluster.ask("GET", "/v1/log", node=node, query={"offset": str(offset)})
        assert status == 200, reply
        assert reply["logStart"] == "0" or reply["logStart"] == 0, reply
        if not reply["batches"]:
            return found
        found += [b64decode(each) for each in reply["batches"]]
        offset = parse(found[-1]).header.end_offset


def test_what_is_removed_here_is_in_the_archive_and_has_a_receipt(cluster):
    for node_id in cluster.controllers:
        closed = sorted(cluster.whole[node_id])[:-1]
        gone = set(closed) - cluster.ledger_files(node_id).keys()
        assert gone
        kept = {f"log/{each.base_offset:020d}.log": each for each in receipts(cluster, node_id)}
        for name in gone:
            content = cluster.whole[node_id][name]
            assert cluster.archive.files[name.removeprefix("log/")] == content
            assert kept[name].size == len(content)
    assert cluster.archive.writes == len(cluster.archive.files), "each is copied once"


def test_the_log_is_read_as_a_whole_by_every_node(cluster):
    for node_id in cluster.controllers:
        assert read_log(cluster, node_id)[: len(cluster.bytes)] == cluster.bytes


def test_the_cache_is_bounded(cluster):
    read_log(cluster, 1)
    names = [n for n in cluster.platters[1].names if n.startswith("recalled/")]
    size = sum(len(cluster.platters[1].names[n].content) for n in names)
    assert 0 < size <= SETTINGS["archive_cache_bytes"]
    assert cluster.controllers[1]._storage.history.recalls > 1


def test_a_segment_is_served_by_ranges_from_the_archive(cluster):
    status, listed = cluster.ask("GET", "/v1/segments", node=2)
    assert status == 200
    assert int(listed["segments"][0]["baseOffset"]) == 0
    replies = cluster.send("GET", "/v1/segments/0", node=2)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status == 206
    assert replies[0].body == cluster.archive.files[f"{0:020d}.log"]


def test_an_archive_that_is_gone_is_a_sentence_and_changes_nothing(cluster):
    cluster.archive.gone = True
    before = {n: local(cluster, n) for n in cluster.controllers}
    status, reply = cluster.ask("GET", "/v1/log", node=1, query={"offset": "0"})
    assert status >= 500
    assert "the archive simulated-archive can't be used" in reply["message"]
    fill(cluster, 3, start=700)
    assert cluster.ask("GET", "/v1/log", node=1, query={"offset": "0"})[0] >= 500
    assert {n: [b for b in local(cluster, n) if b in before[n]] for n in before} == before
    cluster.archive.heal()
    assert read_log(cluster, 1)[: len(cluster.bytes)] == cluster.bytes


def test_an_archive_that_never_answers_is_a_sentence(cluster):
    cluster.archive.silent = True
    status, reply = cluster.ask("GET", "/v1/log", node=1, query={"offset": "0"})
    assert status >= 500
    assert "has not answered in 5 seconds" in reply["message"]


def test_a_flipped_byte_in_the_archive_is_named_and_not_served(cluster):
    name = f"{0:020d}.log"
    content = bytearray(cluster.archive.files[name])
    content[2000] ^= 1
    cluster.archive.files[name] = bytes(content)
    status, reply = cluster.ask("GET", "/v1/log", node=1, query={"offset": "0"})
    assert status >= 500
    assert f"simulated-archive/{name}, byte " in reply["message"]
    assert "Put a sound copy in its place" in reply["message"]
    assert not [
        n for n in cluster.platters[1].names if n.startswith("recalled/") and n.endswith(".log")
    ]


@pytest.mark.parametrize("how", [Death.KILLED, Death.POWER])
def test_a_restart_knows_what_is_archived(cluster, how):
    cluster.kill(2, how)
    cluster.start(2)
    cluster.run(2.0)
    assert cluster.stopped == {}
    assert read_log(cluster, 2)[: len(cluster.bytes)] == cluster.bytes
    assert local(cluster, 2)[0] > 0


def test_without_the_archive_a_node_starts_and_leads(cluster):
    cluster.archive.gone = True
    cluster.kill(1)
    cluster.start(1)
    cluster.run(2.0)
    cluster.lead(1)
    fill(cluster, 2, start=800)
    assert cluster.stopped == {}


def test_a_wiped_node_fetches_nothing_that_is_archived(cluster):
    forget_journal(cluster)
    cluster.kill(3)
    wipe(cluster, 3)
    cluster.start(3)
    cluster.run(20.0)
    assert cluster.stopped == {}
    assert cluster.events("history_found_archived")
    assert not cluster.events("history_backfilled")
    assert local(cluster, 3)[0] >= local(cluster, 1)[0]
    assert read_log(cluster, 3)[: len(cluster.bytes)] == cluster.bytes


def test_a_lost_receipt_is_written_again(cluster):
    cluster.kill(3)
    names = [n for n in cluster.platters[3].names if n.endswith(".receipt")]
    cluster.platters[3].names[names[1]].content[40] ^= 1
    cluster.platters[3].names.pop(names[2])
    cluster.start(3)
    cluster.run(20.0)
    assert cluster.events("receipt_damaged")
    assert read_log(cluster, 3)[: len(cluster.bytes)] == cluster.bytes


def test_a_node_without_a_checkpoint_that_loads_brings_the_history_back(cluster):
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    for name, inode in cluster.platters[3].names.items():
        if name.startswith("checkpoints/"):
            inode.content[300] ^= 1
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.run(20.0)
    cluster.lead(3)
    assert cluster.events("history_missing")
    assert cluster.stopped == {}
    fill(cluster, 1, start=900)
    cluster.run(3.0)
    heads = {controller.ledger.head for controller in cluster.controllers.values()}
    assert len(heads) == 1


def test_a_damaged_segment_is_mended_from_the_archive_when_no_peer_has_it():
    cluster = world()
    checkpoint(cluster, 3)
    two_checkpoints(cluster, (1, 2))
    cluster.run_until(lambda: all(local(cluster, n)[0] > 0 for n in (1, 2)))
    cluster.run(5.0)
    assert local(cluster, 3)[0] == 0
    cluster.kill(3)
    damage(cluster, 3, 0)
    cluster.start(3)
    cluster.run(1.0)
    status, reply = cluster.ask("GET", "/v1/log", node=3, query={"offset": "0"})
    assert status >= 500, reply
    cluster.run_until(lambda: bool(cluster.events("ledger_mended")))
    status, reply = cluster.ask("GET", "/v1/log", node=3, query={"offset": "0"})
    assert status == 200, reply


def test_nothing_leaves_below_two_checkpoints_or_within_what_stays():
    cluster = world()
    for node_id in cluster.controllers:
        checkpoint(cluster, node_id)
    cluster.run(20.0)
    assert cluster.archive.files == {}
    kept = world(archive_keep_bytes=1_000_000)
    two_checkpoints(kept)
    kept.run(20.0)
    assert kept.archive.files == {}
    young = world(archive_keep_s=3600.0)
    two_checkpoints(young)
    young.run(20.0)
    assert young.archive.files == {}
    young.run(3700.0)
    assert young.archive.files


def test_a_file_of_another_history_in_the_archive_stops_archiving_and_stays():
    cluster = world()
    other = world(seed=2)
    name = f"{0:020d}.log"
    foreign = other.ledger_files(1)[f"log/{name}"]
    assert foreign != cluster.ledger_files(1)[f"log/{name}"]
    cluster.archive.files[name] = foreign
    two_checkpoints(cluster)
    cluster.run(10.0)
    assert cluster.archive.files == {name: foreign}
    assert local(cluster, 1)[0] == 0
    assert cluster.events("archive_failed")


def test_an_empty_place_is_not_taken_for_the_archive(cluster):
    cluster.archive.files.clear()
    before = {n: local(cluster, n) for n in cluster.controllers}
    for start in (1_000, 2_000):
        fill(cluster, 20, start=start)
        two_checkpoints(cluster)
    cluster.run(10.0)
    assert cluster.archive.files == {}
    assert {n: local(cluster, n)[0] for n in before} == {n: b[0] for n, b in before.items()}
    failed = cluster.events("archive_failed")
    assert "it is missing, and it was there" in failed[-1]["why"]


def test_a_damaged_segment_is_not_copied():
    cluster = world(1)
    damage(cluster, 1, 0)
    two_checkpoints(cluster)
    cluster.run(5.0)
    assert cluster.archive.files == {}
    assert local(cluster, 1)[0] == 0


@pytest.mark.parametrize("kills", range(12))
def test_a_node_that_dies_at_any_step_loses_nothing(kills):
    """Between copy, receipt and removal; each life makes a few steps more."""
    cluster = world(1)
    whole = [batch.encoded for batch in cluster.batches()]
    two_checkpoints(cluster)
    for life in range(3):
        cluster.run(1.0 + 0.004 * kills + 0.001 * life)
        how = Death.POWER if (kills + life) % 2 else Death.KILLED
        cluster.kill(1, how)
        here = cluster.ledger_files(1)
        for base in segment_bases(cluster.archive.files):
            name = f"{base:020d}.log"
            assert (
                here.get(f"log/{name}", cluster.archive.files[name]) == cluster.archive.files[name]
            )
        cluster.start(1)
        cluster.run(0.2)
        cluster.lead(1)
    cluster.run(10.0)
    assert cluster.stopped == {}
    assert read_log(cluster, 1)[: len(whole)] == whole
    assert local(cluster, 1)[0] > 0


def ask_to_archive(cluster, node, query=None, headers=None):
    """Ask, and return status and reply; the answer may come after seconds."""
    replies = cluster.send(
        "POST", "/v1/archive/run", node=node, query=query or {}, headers=headers or {}
    )
    cluster.run_until(lambda: bool(replies))
    return replies[0].status, msgspec.json.decode(replies[0].body)


def waiting(**more):
    """A cluster with segments that could leave, and an hour until the next look."""
    cluster = world(archive_every_s=3600.0, **more)
    two_checkpoints(cluster)
    assert cluster.archive.files == {}
    return cluster


def test_an_asked_controller_moves_segments_at_once_and_says_what_stays():
    cluster = waiting()
    whole = [batch.encoded for batch in cluster.batches()]
    for node_id, before in ((2, 0), (1, 1), (3, 1)):
        first = local(cluster, node_id)
        status, reply = ask_to_archive(cluster, node_id, headers={"x-logberg-reason": "room"})
        assert status == 200, reply
        left = set(first) - set(local(cluster, node_id))
        assert reply["nodeId"] == node_id
        assert reply["ended"]
        assert reply["segments"] == len(left) > 0
        assert reply["bytes"] == sum(len(cluster.archive.files[f"{b:020d}.log"]) for b in left)
        assert "the newest one is still being written" in reply["note"]
        asked = cluster.events("archive_asked")[-1]
        assert (asked["principal"], asked["reason"]) == ("User:alice", "room")
        if before:
            assert cluster.archive.writes == len(cluster.archive.files), "each is copied once"
    assert read_log(cluster, 2)[: len(whole)] == whole
    # Once more: nothing is left to move.
    status, again = ask_to_archive(cluster, 2)
    assert (status, again["segments"], again["run"]) == (200, 0, 2)
    assert again["note"]


def test_the_leader_does_not_wait_for_others_when_it_is_asked():
    cluster = waiting()
    status, reply = ask_to_archive(cluster, 1)
    assert status == 200
    assert reply["segments"] > 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"archive_keep_bytes": 1_000_000}, "archive.keep_bytes is 1000000"),
        ({"archive_keep_s": 3600.0}, "archive.keep_ms is 3600000"),
    ],
)
def test_settings_keep_segments_also_from_those_who_ask(settings, says):
    cluster = waiting(**settings)
    status, reply = ask_to_archive(cluster, 2)
    assert (status, reply["segments"]) == (200, 0)
    assert says in reply["note"]


def test_before_two_checkpoints_the_answer_says_so():
    cluster = world(archive_every_s=3600.0)
    status, reply = ask_to_archive(cluster, 2)
    assert (status, reply["segments"]) == (200, 0)
    assert "until there are 2 checkpoints" in reply["note"]


def test_a_run_that_takes_long_is_waited_for_by_its_number():
    cluster = waiting()
    cluster.archive.silent = True
    status, reply = ask_to_archive(cluster, 2)
    assert (status, reply["ended"], reply["segments"]) == (200, False, 0)
    # Who asks anew joins it.
    assert ask_to_archive(cluster, 2)[1]["run"] == reply["run"]
    cluster.archive.heal()
    status, done = ask_to_archive(cluster, 2, {"run": str(reply["run"])})
    assert status == 200
    assert done["ended"]
    assert done["segments"] > 0
    # It is remembered until somebody asks for another.
    assert ask_to_archive(cluster, 2, {"run": str(reply["run"])})[1] == done
    status, refused = ask_to_archive(cluster, 2, {"run": "7"})
    assert status == 404
    assert "knows nothing of run 7" in refused["message"]


def test_an_archive_that_is_gone_fails_the_run_with_a_sentence():
    cluster = waiting()
    cluster.archive.gone = True
    before = local(cluster, 2)
    status, reply = ask_to_archive(cluster, 2)
    assert status >= 500
    assert "the archive simulated-archive can't be used" in reply["message"]
    assert local(cluster, 2) == before
    cluster.archive.heal()
    assert ask_to_archive(cluster, 2)[1]["segments"] > 0


def test_without_an_archive_there_is_a_sentence():
    cluster = Cluster(1)
    status, reply = ask_to_archive(cluster, 1)
    assert status == 400
    assert "controller 1 has no archive: name one in [archive] of its file" in reply["message"]


def test_a_run_ends_when_the_controller_stops():
    cluster = waiting()
    cluster.archive.silent = True
    replies = cluster.send("POST", "/v1/archive/run", node=2)
    cluster.run(0.1)
    cluster.processes[2].run(cluster.controllers[2]._storage.archiving.stop)
    cluster.run_until(lambda: bool(replies))
    assert replies[0].status >= 500
    assert b"ask again in a moment" in replies[0].body
