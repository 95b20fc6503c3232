"""What the core and the guard see of a journal, compared with a plain list."""

import contextlib
import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.journal import DamagedError, RaftJournal, WrongFolderError
from runtime.disk.real import RealDisk
from runtime.simulated.disk_faults import FAST, STUCK
from tests.unit.quorum.journal.rig import LOG, Rig, command, entries, fill, manifest_at

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.binary(max_size=60)),
        st.tuples(st.just("cut_from"), st.integers(0, 40)),
        st.tuples(st.just("cut_to"), st.integers(0, 40)),
        st.tuples(st.just("vote"), st.integers(0, 9)),
        st.tuples(st.just("commit"), st.integers(1, 40)),
        st.tuples(st.sampled_from(["sync", "second", "kill", "stop", "power"]), st.none()),
    ),
    max_size=60,
)


class Model:
    """What a journal must say."""

    def __init__(self) -> None:
        self.entries: list[tuple[bytes, int, int]] = []
        self.term = 0
        self.vote: str | None = None


def run(rig: Rig, operations) -> None:
    model = Model()
    journal = rig.open()
    manifest = None
    for operation, value in operations:
        if operation == "add":
            index = model.entries[-1][1] + 1 if model.entries else 1
            model.entries.append((value, index, model.term))
            journal.add(value, index, model.term)
        elif operation == "cut_from" and 2 <= value < len(model.entries):
            journal.delete_from(value)
            del model.entries[value:]
        elif operation == "cut_to" and value + 2 <= len(model.entries):
            # As the node does: what the manifest names is durable, then the manifest is.
            journal.sync()
            rig.settle()
            manifest = manifest_at(journal, model.entries[value + 1][1])
            journal.delete_before(value)
            del model.entries[:value]
        elif operation == "vote":
            model.term += value
            model.vote = f"node-{value}"
            journal.set_term(model.term, model.vote)
        elif operation == "commit":
            journal.set_commit_index(value)
        elif operation == "sync":
            journal.sync()
            rig.settle()
        elif operation == "second":
            journal.on_second()
        elif operation in ("kill", "stop", "power"):
            journal.sync()
            rig.settle()
            if operation == "stop":
                rig.stop(journal)
            elif operation == "kill":
                rig.kill()
            else:
                rig.lose_power()
            before = journal.durable_position
            journal = rig.open(manifest)
            assert journal.damage == ""
            assert journal.durable_position == journal.written_position
            # What a peer was told is never above where the next incarnation begins.
            assert journal.written_position >= before
        assert entries(journal) == model.entries
        assert len(journal) == len(model.entries)
        assert journal.term == model.term
        assert journal.voted_for == model.vote
    assert rig.failures == []


@settings(max_examples=120)
@given(OPERATIONS, st.sampled_from([200, 700, 1 << 20]), st.integers(0, 1 << 30))
def test_a_journal_is_a_list_that_survives(operations, segment_bytes, seed) -> None:
    run(Rig(seed, segment_bytes=segment_bytes), operations)


def test_the_face_of_a_list() -> None:
    journal = Rig().open()
    fill(journal, 1, 10)
    assert journal[0] == (command(1), 1, 1)
    assert journal[-1] == (command(10), 10, 1)
    assert journal[3:5] == [(command(4), 4, 1), (command(5), 5, 1)]
    assert journal[20:] == []
    with pytest.raises(IndexError):
        journal[10]
    assert journal.entry(10) == (command(10), 10, 1)
    assert journal.entry(11) is None
    assert journal.entry(0) is None
    assert (journal.first_index, journal.last_index) == (1, 10)


def test_a_fresh_journal_says_what_the_core_expects() -> None:
    journal = Rig().open()
    assert len(journal) == 0
    assert journal.term == 0
    assert journal.voted_for is None
    assert journal.commit_index == 1
    assert journal.directory_id == b"\x01" * 16
    assert journal.formation is None
    assert not journal.lack_of_room


def test_nothing_is_durable_before_a_sync_ends() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 3)
    promised = journal.position_of_entry(3)
    assert journal.durable_position < promised
    journal.sync()
    assert journal.durable_position < promised
    assert journal.durable_index == 0
    rig.settle()
    assert journal.durable_position >= promised
    assert journal.durable_index == 3
    assert rig.durable_calls == 1


def test_what_comes_during_a_sync_is_synced_together_behind_it() -> None:
    rig = Rig()
    journal = rig.open()
    for index in range(1, 11):
        journal.add(command(index), index, 1)
        journal.sync()
    rig.settle()
    assert journal.durable_index == 10
    assert rig.durable_calls == 2


def test_a_vote_has_its_own_position() -> None:
    rig = Rig()
    journal = rig.open()
    journal.set_term(3, "2@dir")
    vote = journal.position_of_vote
    fill(journal, 1, 2, term=3)
    assert journal.position_of_vote == vote < journal.position_of_entry(1)
    assert journal.position_needing_sync == journal.position_of_entry(2)


def test_nobody_waits_for_a_commit_index() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 5)
    journal.sync()
    rig.settle()
    journal.set_commit_index(4)
    journal.on_second()
    assert journal.written_position > journal.position_needing_sync
    journal.sync()
    rig.settle()
    assert rig.durable_calls == 1
    rig.kill()
    assert rig.open().commit_index == 4


def test_a_commit_index_never_exceeds_the_entries() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 5)
    journal.set_commit_index(9)
    assert journal.commit_index == 5


def test_formation_and_directory_survive_compaction_of_every_older_segment() -> None:
    rig = Rig(segment_bytes=300)
    journal = rig.open()
    journal.set_formation(b"three voters")
    journal.set_term(7, "2@dir")
    for index in range(1, 200):
        journal.add(command(index), index, 7)
        journal.sync()
        rig.settle(1)
    before = len(journal.segment_names)
    manifest = manifest_at(journal, 190)
    journal.delete_before(188)
    journal.sync()
    rig.settle()
    assert len(journal.segment_names) < before / 3
    assert sorted(rig.files()) == [*journal.segment_names, "journal/synced"]
    rig.lose_power()
    again = rig.open(manifest)
    assert again.formation == b"three voters"
    assert again.directory_id == b"\x01" * 16
    assert (again.term, again.voted_for) == (7, "2@dir")
    assert entries(again) == [(command(i), i, 7) for i in range(189, 200)]


def test_segments_go_only_when_what_replaces_them_is_durable() -> None:
    rig = Rig(segment_bytes=300)
    journal = rig.open()
    fill(journal, 1, 30)
    journal.sync()
    rig.settle()
    rig.faults.set_profile(STUCK)
    fill(journal, 31, 40)
    journal.note_synced()
    names = journal.segment_names
    assert len(names) == 3
    journal.delete_before(35)
    journal.sync()
    rig.settle()
    assert journal.segment_names == names
    rig.faults.set_profile(FAST)
    rig.settle()
    assert journal.segment_names == names[1:]
    assert names[0] not in rig.files()


def test_a_stop_during_a_sync_makes_all_durable() -> None:
    rig = Rig(segment_bytes=300)
    journal = rig.open()
    rig.faults.set_profile(STUCK)
    for first in (1, 21, 41):
        fill(journal, first, first + 19)
        journal.sync()
        journal.note_synced()
    assert len(journal.segment_names) == 4
    journal.close()
    rig.lose_power()
    again = rig.open()
    assert again.damage == ""
    assert again.last_index == 60


def test_bytes_after_tells_what_a_compaction_would_keep() -> None:
    journal = Rig().open()
    fill(journal, 1, 100)
    assert journal.bytes_after(100) == 0
    assert journal.bytes_after(200) == 0
    assert journal.bytes_after(99) == journal.position_of_entry(100) - journal.position_of_entry(99)
    assert journal.bytes_after(10) > journal.bytes_after(50)


def test_positions_go_on_over_restarts() -> None:
    rig = Rig()
    last = 0
    for incarnation in range(5):
        journal = rig.open()
        assert journal.written_position >= last
        fill(journal, journal.last_index + 1, journal.last_index + 3)
        journal.sync()
        rig.settle()
        last = journal.durable_position
        if incarnation % 2:
            rig.stop(journal)
        else:
            rig.kill()
    assert entries(rig.open()) == [(command(i), i, 1) for i in range(1, 16)]


def test_reopening_a_stopped_journal_writes_no_new_segment() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 3)
    rig.stop(journal)
    journal = rig.open()
    assert len(journal.segment_names) == 1
    assert len(journal) == 3


@pytest.mark.parametrize("how", ["kill", "power"])
def test_many_restarts_leave_few_segments(how: str) -> None:
    rig = Rig(segment_bytes=1 << 20)
    for incarnation in range(30):
        journal = rig.open()
        fill(journal, journal.last_index + 1, journal.last_index + 1)
        journal.sync()
        rig.settle()
        if how == "kill":
            rig.kill()
        else:
            rig.lose_power()
        assert incarnation < 2 or len(journal.segment_names) <= incarnation + 1
    assert rig.open().last_index == 30


def test_a_folder_of_another_node_is_refused() -> None:
    one, two = Rig(node_id=1), Rig(node_id=2)
    for rig in (one, two):
        fill(rig.open(), 1, 3)
    files_of_one, files_of_two = one.files(), two.files()
    with pytest.raises(WrongFolderError, match="belongs to node 2, this is node 1"):
        one.with_files(files_of_two).open()
    with pytest.raises(WrongFolderError, match="belongs to node 1, this is node 2"):
        two.with_files(files_of_one).open()


def test_a_folder_of_another_cluster_is_refused() -> None:
    rig = Rig()
    fill(rig.open(), 1, 3)
    with pytest.raises(WrongFolderError, match=r"cluster cluster-a.*for cluster\s+cluster-b"):
        rig.with_files(rig.files()).open(cluster_id="cluster-b")


def test_segments_of_two_directories_are_refused() -> None:
    rig, twin = Rig(segment_bytes=300), Rig(segment_bytes=300)
    for number, each in enumerate((rig, twin)):
        journal = each.open(new_directory_id=bytes([number]) * 16)
        fill(journal, 1, 30)
        journal.sync()
        each.settle()
        fill(journal, 31, 60)
        journal.sync()
        each.settle()
    files = rig.files()
    name = "journal/00000000000000000002.wal"
    files[name] = twin.files()[name]
    with pytest.raises(DamagedError, match="mixed"):
        rig.with_files(files).open()


def test_a_segment_under_anothers_name_is_refused() -> None:
    rig = Rig(segment_bytes=300)
    journal = rig.open()
    fill(journal, 1, 30)
    journal.sync()
    rig.settle()
    files = rig.files()
    files["journal/00000000000000000002.wal"] = files["journal/00000000000000000001.wal"]
    with pytest.raises(DamagedError, match="holds segment 1"):
        rig.with_files(files).open()


def test_a_full_disk_stops_the_journal_before_anything_is_promised() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 10)
    journal.sync()
    rig.settle()
    rig.faults.capacity_bytes = rig.platter.used_bytes() + 100
    journal.add(bytes(1000), 11, 1)
    promised = journal.position_of_entry(11)
    journal.sync()
    rig.settle()
    assert journal.durable_position < promised
    assert [error.errno for error in rig.failures] == [errno.ENOSPC]
    assert "the disk is full" in str(rig.failures[0])
    assert "free space" in str(rig.failures[0])
    journal.add(bytes(1000), 12, 1)
    journal.on_second()
    journal.sync()
    rig.settle()
    journal.close()
    assert len(rig.failures) == 1
    rig.kill()
    rig.faults.heal()
    again = rig.open()
    assert again.damage == ""
    assert entries(again) == [(command(i), i, 1) for i in range(1, 11)]


def test_a_disk_too_full_to_open_says_so_and_loses_nothing() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 10)
    journal.sync()
    rig.settle()
    fill(journal, 11, 12)
    journal.note_synced()
    rig.kill()
    rig.faults.capacity_bytes = rig.platter.used_bytes() + 50
    with pytest.raises(OSError, match="opening journal/: the disk is full; free space"):
        rig.open()
    rig.kill()
    rig.faults.heal()
    assert rig.open().last_index >= 10


def test_room_is_looked_up_every_second() -> None:
    rig = Rig()
    journal = rig.open(reserve_bytes=10_000)
    rig.faults.capacity_bytes = rig.platter.used_bytes() + 9_000
    assert not journal.lack_of_room
    journal.on_second()
    assert journal.lack_of_room
    rig.faults.heal()
    journal.on_second()
    assert not journal.lack_of_room


def test_a_full_disk_at_every_byte_loses_nothing_durable() -> None:
    for room in range(0, 700, 13):
        rig = Rig(segment_bytes=250)
        journal = rig.open()
        rig.faults.capacity_bytes = rig.platter.used_bytes() + room
        durable = 0
        for index in range(1, 20):
            journal.add(command(index), index, 1)
            journal.sync()
            rig.settle(1)
            durable = max(durable, journal.durable_index)
        assert len(rig.failures) <= 1
        rig.lose_power()
        rig.faults.heal()
        again = rig.open()
        assert again.damage == ""
        assert again.last_index >= durable


def test_a_failed_sync_stops_the_journal_for_good() -> None:
    rig = Rig()
    journal = rig.open()
    fill(journal, 1, 3)
    journal.sync()
    rig.settle()
    fill(journal, 4, 6)
    rig.faults.fail("sync")
    journal.sync()
    rig.settle()
    assert [error.errno for error in rig.failures] == [errno.EIO]
    assert "check the disk" in str(rig.failures[0])
    steps = rig.faults.steps
    fill(journal, 7, 9)
    journal.sync()
    journal.on_second()
    journal.close()
    rig.settle()
    assert rig.faults.steps == steps
    assert journal.durable_index == 3
    assert rig.durable_calls == 1
    rig.kill()
    again = rig.open()
    assert again.damage == ""
    assert again.last_index >= 3


@pytest.mark.parametrize("operation", ["create", "sync_folder", "unlink", "write", "sync"])
def test_an_error_anywhere_stops_the_journal_once(operation: str) -> None:
    for skip in range(4):
        rig = Rig(segment_bytes=250)
        journal = rig.open()
        rig.faults.fail(operation, skip, lasting=True)
        durable = 0
        for index in range(1, 30):
            journal.add(command(index), index, 1)
            journal.sync()
            rig.settle(1)
            durable = max(durable, journal.durable_index)
            if index % 10 == 0:
                journal.delete_before(len(journal) - 3)
        rig.settle()
        assert len(rig.failures) == 1
        assert journal.failure is rig.failures[0]
        assert durable < 29 or operation == "unlink"


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_whatever_of_a_stop_fails_is_no_damage_at_the_next_start(operation: str) -> None:
    """A note that isn't there must not be noted as durable."""
    for skip in range(4):
        rig = Rig()
        journal = rig.open()
        fill(journal, 1, 3)
        rig.faults.fail(operation, skip)
        with contextlib.suppress(OSError):
            journal.close()
        rig.faults.succeed()
        rig.kill()
        assert rig.open().damage == "", skip


def test_on_a_real_disk(tmp_path: Path) -> None:
    def open_it(disk: RealDisk) -> RaftJournal:
        return RaftJournal.open(
            disk,
            cluster_id="cluster-a",
            node_id=1,
            new_directory_id=b"d" * 16,
            manifest=None,
            on_durable=lambda: None,
            on_failed=failures.append,
            log=LOG,
            segment_bytes=1000,
        )

    failures: list[OSError] = []
    for incarnation in range(3):
        disk = RealDisk(tmp_path)
        disk.lock()
        journal = open_it(disk)
        assert journal.last_index == incarnation * 50
        for index in range(incarnation * 50 + 1, incarnation * 50 + 51):
            journal.add(command(index), index, 1)
            journal.note_synced()
        if incarnation == 1:
            journal.note_synced()
        else:
            journal.close()
        disk.close()
    disk = RealDisk(tmp_path)
    assert entries(open_it(disk)) == [(command(i), i, 1) for i in range(1, 151)]
    disk.close()
    assert failures == []
