"""Where the journal begins: the manifest, its store, and what the core sees of both."""

import errno
from typing import Any

import google_crc32c
import msgpack
import pytest
from pysyncobj.config import SERIALIZER_STATE

from quorum.api import Voter
from quorum.journal import DamagedError, WrongFolderError
from quorum.journal.manifest import (
    _HEAD,
    _MAGIC,
    FILE,
    JournalManifest,
    decode_manifest,
    encode_manifest,
)
from quorum.raft.core_dump import CoreDump, replaced_os
from quorum.raft.core_node import CoreNode
from tests.unit.quorum.journal.rig import Rig, command, entries, fill, manifest_at


def manifest(index: int = 20, term: int = 3, **changes: Any) -> JournalManifest:
    fields: dict[str, Any] = {
        "cluster_id": "cluster-a",
        "first": (command(index - 1), index - 1, term),
        "second": (command(index), index, term),
        "mark_data": b"log end and head",
        "voters": (Voter(1, b"\x01" * 16, "one", 1), Voter(2, b"\x02" * 16, "two", 2)),
    }
    return JournalManifest(**(fields | changes))


def serializer(store: Any) -> CoreDump:
    return CoreDump(store, 1 << 16, False, None, None, None)


def test_a_manifest_is_read_as_it_was_written() -> None:
    written = manifest(directory_id=b"\x01" * 16, journal_position=77)
    read = decode_manifest(encode_manifest(written))
    assert read == written
    named = manifest(named=True)
    assert decode_manifest(encode_manifest(named)) == named
    # The core compares them with the journal's entries.
    assert isinstance(read.first, tuple)
    assert read.mark == (20, 3, b"log end and head")


def test_every_flipped_bit_and_every_length_is_damage() -> None:
    data = encode_manifest(manifest())
    for place in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(DamagedError, match="the file manifest is damaged"):
            decode_manifest(bytes(flipped))
    for length in range(len(data)):
        with pytest.raises(DamagedError, match="Restore it, or move"):
            decode_manifest(data[:length])
    with pytest.raises(DamagedError):
        decode_manifest(data + b"\0")


def sealed(body: object) -> bytes:
    """What a peer can make up: any body under its right checksum."""
    data = msgpack.packb(body)
    return _HEAD.pack(_MAGIC, len(data), google_crc32c.value(data)) + data


FIRST, SECOND = [b"\1", 19, 3], [b"\1", 20, 3]


@pytest.mark.parametrize(
    "body",
    [
        7,
        [],
        [1],
        [1, 5, 5, 5, 5, 5, 5, 5],
        [1, "c", FIRST, SECOND, b"", [], b""],
        [1, "c", FIRST, SECOND, b"", [[1, b"d"]], b"", 0],
        [1, "c", FIRST, FIRST, b"", [], b"", 0],
        [1, "c", [b"\1", 2**62, 3], [b"\1", 2**62 + 1, 3], b"", [], b"", 0],
        [1, "c", [b"\1", 0, 3], [b"\1", 1, 3], b"", [], b"", 0],
        [1, "c", [b"\1", 19, 4], SECOND, b"", [], b"", 0],
        [1, "c", FIRST, [b"\1", 20, 2**31], b"", [], b"", 0],
        [1, "c", [b"\1", 19, -1], SECOND, b"", [], b"", 0],
        [1, "c", FIRST, SECOND, b"", [], b"", -1],
        [1, "c", FIRST, SECOND, b"", [], b"", 2**62],
    ],
)
def test_a_right_checksum_does_not_make_a_manifest(body: object) -> None:
    with pytest.raises(DamagedError, match="the file of node 2 is damaged"):
        decode_manifest(sealed(body), "of node 2")


def test_a_store_without_a_file_has_no_manifest() -> None:
    store = Rig().store()
    assert store.load() is None
    assert not replaced_os.path.isfile(store)
    assert serializer(store).checkSerializing() == (SERIALIZER_STATE.NOT_SERIALIZING, None)
    assert serializer(store).getTransmissionData("2") == (b"", True, True)


def test_a_damaged_file_is_refused_at_load() -> None:
    rig = Rig()
    rig.platter.put(FILE, encode_manifest(manifest())[:-1])
    with pytest.raises(DamagedError, match="the file manifest is damaged"):
        rig.store().load()


def test_an_offer_is_reported_once_when_it_is_durable() -> None:
    rig = Rig()
    store, answers = rig.store(), []
    core = serializer(store)
    store.offer(manifest(20), answers.append)
    assert core.checkSerializing() == (SERIALIZER_STATE.SERIALIZING, None)
    assert answers == []
    assert not rig.disk.exists(FILE)
    rig.settle()
    assert answers == [True]
    assert core.checkSerializing() == (SERIALIZER_STATE.SUCCESS, 19)
    assert core.checkSerializing() == (SERIALIZER_STATE.NOT_SERIALIZING, None)
    rig.lose_power()
    again = rig.store()
    assert again.load() == manifest(20)
    assert replaced_os.path.isfile(again)
    nodes = [CoreNode(voter.node_id, voter.directory_id) for voter in manifest().voters]
    assert serializer(again).deserialize() == (
        None,
        (command(20), 20, 3),
        (command(19), 19, 3),
        nodes,
    )


def test_what_the_core_wants_to_serialize_is_not_written() -> None:
    rig = Rig()
    store = rig.store()
    core = serializer(store)
    core.serialize((None, (b"", 5, 1), (b"", 4, 1), set()), 4)
    rig.settle()
    assert core.checkSerializing() == (SERIALIZER_STATE.NOT_SERIALIZING, None)
    assert not rig.disk.exists(FILE)


def test_an_older_manifest_never_replaces_a_newer_one() -> None:
    rig = Rig()
    store, answers = rig.store(), []
    store.offer(manifest(20), answers.append)
    store.install(manifest(50), answers.append)
    store.offer(manifest(30), answers.append)
    store.offer(manifest(50), answers.append)
    assert answers == [False, False]
    rig.settle()
    assert answers == [False, False, True, True]
    assert store.current == manifest(50)
    assert not store.writing
    assert decode_manifest(rig.files()[FILE]) == manifest(50)


def test_an_installation_is_loaded_but_not_reported_as_a_compaction() -> None:
    rig = Rig()
    store = rig.store()
    core = serializer(store)
    store.install(manifest(50), lambda _: None)
    data = encode_manifest(manifest(50))
    assert not core.setTransmissionData((data, True, True))
    rig.settle()
    assert core.checkSerializing() == (SERIALIZER_STATE.NOT_SERIALIZING, None)
    assert core.setTransmissionData((data, True, True))
    assert not core.setTransmissionData((data[:-1], True, True))
    assert not core.setTransmissionData(None)


def test_a_peer_gets_the_manifest_whole_even_while_another_is_written() -> None:
    rig = Rig()
    store = rig.store()
    store.offer(manifest(20), lambda _: None)
    rig.settle()
    store.offer(manifest(30), lambda _: None)
    data, first, last = serializer(store).getTransmissionData("2")
    assert (first, last) == (True, True)
    assert decode_manifest(data) == manifest(20)


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync_folder"])
def test_a_failed_write_stops_the_node_and_leaves_the_old_manifest(operation: str) -> None:
    rig = Rig()
    store, answers = rig.store(), []
    store.offer(manifest(20), lambda _: None)
    rig.settle()
    assert serializer(store).checkSerializing() == (SERIALIZER_STATE.SUCCESS, 19)
    rig.faults.fail(operation, error=errno.ENOSPC)
    store.offer(manifest(30), answers.append)
    rig.settle()
    assert answers == []
    assert "writing the file manifest: the disk is full" in str(rig.failures[0])
    assert store.current == manifest(20)
    assert serializer(store).checkSerializing()[0] != SERIALIZER_STATE.SUCCESS


# -- journal and manifest together -----------------------------------------------------------


def filled(last: int = 30) -> Rig:
    rig = Rig(segment_bytes=400)
    journal = rig.open()
    for index in range(1, last + 1):
        journal.add(command(index), index, 1)
        journal.sync()
        rig.settle(1)
    return rig


def test_entries_before_the_manifest_are_dropped() -> None:
    rig = filled()
    before = len(rig.files())
    rig.kill()
    mark = manifest(20, term=1)
    journal = rig.open(mark)
    assert entries(journal) == [(command(i), i, 1) for i in range(19, 31)]
    assert journal.damage == ""
    assert not journal.opened.reset
    assert journal.commit_index >= 20
    rig.settle()
    assert len(rig.files()) <= before - 3
    rig.lose_power()
    assert entries(rig.open(mark)) == entries(journal)


@pytest.mark.parametrize("index", [31, 32, 100])
def test_a_jump_is_finished(index: int) -> None:
    rig = filled()
    rig.kill()
    mark = manifest(index, term=2)
    journal = rig.open(mark)
    assert journal.opened.reset
    assert journal.damage == ""
    assert entries(journal) == [mark.first, mark.second]
    assert journal.commit_index == index
    assert journal.term == 2
    assert len(journal.segment_names) == 1
    fill(journal, index + 1, index + 3, 2)
    journal.sync()
    rig.settle()
    rig.lose_power()
    again = rig.open(mark)
    assert not again.opened.reset
    assert again.last_index == index + 3


def test_a_jump_over_a_diverged_tail_is_finished() -> None:
    rig = filled()
    rig.kill()
    mark = manifest(25, term=2)
    journal = rig.open(mark)
    assert journal.damage == ""
    assert entries(journal) == [mark.first, mark.second]


def test_a_jump_below_what_was_committed_here_is_damage() -> None:
    rig = filled()
    rig.kill()
    journal = rig.open()
    journal.set_commit_index(28)
    rig.stop(journal)
    assert "entry 24 differs from the manifest's" in rig.open(manifest(25, term=2)).damage


def test_another_command_at_the_same_index_and_term_is_damage() -> None:
    rig = filled()
    rig.kill()
    other = manifest(25, term=1, second=(b"other", 25, 1))
    assert "entry 25 differs" in rig.open(other).damage


def test_a_manifest_that_knows_of_more_than_the_journal_holds_is_damage() -> None:
    rig = filled()
    files = rig.files()
    del files["journal/synced"]
    witness = manifest(20, 1, directory_id=b"\x01" * 16, journal_position=10_000)
    journal = rig.with_files(files).open(witness)
    assert "missing at its end" in journal.damage
    assert journal.first_index == 19


def test_yesterdays_manifest_is_damage() -> None:
    rig = filled()
    rig.kill()
    journal = rig.open(manifest(25, term=1))
    journal.sync()
    rig.settle()
    rig.kill()
    journal = rig.open(manifest(10, term=1))
    assert "entries before" in journal.damage
    assert entries(journal) == [manifest(10, term=1).first, manifest(10, term=1).second]


def test_a_missing_manifest_is_refused() -> None:
    rig = filled()
    rig.kill()
    rig.open(manifest(25, term=1))
    rig.settle()
    rig.kill()
    with pytest.raises(DamagedError, match="the manifest is missing, yet the journal begins at"):
        rig.open()


def test_a_manifest_without_a_journal_is_refused() -> None:
    with pytest.raises(DamagedError, match="holds no segment"):
        Rig().open(manifest())


def test_a_manifest_of_another_folder_is_refused() -> None:
    rig = filled()
    for stranger in (manifest(20, 1, directory_id=bytes(16)), manifest(20, 1, cluster_id="b")):
        rig.kill()
        with pytest.raises(WrongFolderError, match="files of several folders were mixed"):
            rig.open(stranger)


def test_a_compaction_keeps_what_the_manifest_names() -> None:
    rig = filled(60)
    rig.kill()
    journal = rig.open()
    store = rig.store()
    core = serializer(store)
    store.offer(manifest_at(journal, 50), lambda _: None)
    rig.settle()
    state, index = core.checkSerializing()
    assert state == SERIALIZER_STATE.SUCCESS
    # As the core does.
    journal.delete_before(index - journal[0][1])
    assert journal[0] == store.current.first
    assert journal[1] == store.current.second
    rig.settle()
    assert len(journal.segment_names) < 6
    rig.lose_power()
    store = rig.store()
    again = rig.open(store.load())
    assert entries(again) == [(command(i), i, 1) for i in range(49, 61)]
    assert again.damage == ""
