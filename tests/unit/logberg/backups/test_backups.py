"""Backups of made-up histories: made, verified, restored, and everything that is refused."""

from pathlib import Path

import pytest
import structlog

from audit.generated.writing import write_history
from audit.places.replicas import one_replica
from audit.questions.state import state_at
from audit.questions.verification import verify_replica
from ledger.frame import PREFIX, crc32c
from ledger.segments import SEGMENT_BYTES
from logberg.backups.backup_format import BackupError
from logberg.backups.making import SourceDamagedError, WantedBackup, make_backup
from logberg.backups.places import BackupName, DiskPlace, open_backup, place_of
from logberg.backups.reading import verify_backup
from logberg.backups.restoring import CutPoint, RestoreOrder, restore_backup
from logberg.backups.sources import FolderSource
from logberg.backups.store import create_backup, list_backups, thin_out, young_enough
from quorum.api import Voter
from runtime.disk.real import RealDisk
from verifier.logberg_verify import Options
from verifier.logberg_verify import verify as verify_alone

SMALL = 150_000
"""Bytes of a segment, so that a short history has some."""
VOTERS = tuple(Voter(n, bytes([n]) * 16, "127.0.0.1", 9000 + n) for n in (1, 2, 3))
ALL = CutPoint()
WANTED = WantedBackup(1_790_000_000_123, "0.2.0")


def nothing(*_: object) -> None:
    """Ignore progress."""


QUIET = structlog.wrap_logger(None, processors=[structlog.testing.LogCapture()])


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's folder with several segments and checkpoints."""
    folder = tmp_path_factory.mktemp("history")
    write_history(folder, records=6_000, segment_bytes=SMALL, checkpoint_every=2_000)
    return folder / "controller-1"


@pytest.fixture(scope="session")
def backup(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it."""
    place = tmp_path_factory.mktemp("backups")
    made = create_backup(source_of(history), place_of(str(place)), WANTED, nothing)
    return Path(made.location)


def source_of(folder: Path) -> FolderSource:
    return FolderSource.of_replica(one_replica(str(folder)))


def restored(backup: Path, folder: Path, moment: CutPoint = ALL, **more):
    """Restore into a folder for each voter."""
    disks = {v.node_id: RealDisk(folder / f"controller-{v.node_id}") for v in VOTERS}
    for disk in disks.values():
        disk.make_folder("")
    file = open_backup(str(backup))
    generation_id = more.pop("generation_id", bytes(16))
    new = RestoreOrder(VOTERS, "User:alice", "the disks burnt", 1_790_000_000_500, generation_id)
    cluster_id = more.get("cluster_id") or source_cluster(backup)
    wanted = {"segment_bytes": SMALL, **more, "cluster_id": cluster_id}
    return restore_backup(file, disks, new, moment=moment, on_progress=nothing, **wanted)


def source_cluster(backup: Path) -> str:
    return list_backups(place_of(str(backup.parent)))[0].header.cluster_id


def test_a_backup_holds_the_whole_log_and_says_so(history: Path, backup: Path) -> None:
    source = source_of(history)
    facts = verify_backup(open_backup(str(backup)), nothing)
    assert facts.header.end == source.end
    assert facts.header.start.log_end == 0
    assert facts.records == source.end.log_end
    assert facts.checkpoint is not None
    assert facts.footer.files == len(source.segments) + 1 > 3
    assert facts.size == backup.stat().st_size
    assert BackupName.parse(backup.name) == (WANTED.made_at_ms, source.end.log_end)


def test_the_restored_folders_hold_the_same_state_and_one_batch_more(
    history: Path, backup: Path, tmp_path: Path
) -> None:
    found = restored(backup, tmp_path)
    for voter in VOTERS:
        replica = one_replica(str(tmp_path / f"controller-{voter.node_id}"))
        assert replica.synced_to == found.end
        said = verify_replica(replica)
        assert said.ok, said.problems
        assert said.replayed_to == found.end.log_end
        assert said.proved == said.checkpoints == 1
    before = state_at(one_replica(str(history)), found.kept.log_end)
    after = state_at(one_replica(str(tmp_path / "controller-2")), found.kept.log_end)
    assert before.image.state_hash == after.image.state_hash is not None
    now = state_at(one_replica(str(tmp_path / "controller-2")), found.end.log_end).image
    assert now.quorum.generation == found.generation == before.image.quorum.generation + 1
    assert {v.voter_directory_id for v in now.quorum.voters} == {v.directory_id for v in VOTERS}
    assert now.quorum.leader.leader_id == 1
    last = list(one_replica(str(tmp_path / "controller-1")).reader().batches(found.kept.log_end))
    assert [batch.header.provenance.principal for batch in last] == ["User:alice"]
    assert last[0].header.epoch - found.kept.epoch == 2**20


def test_the_independent_verifier_finds_nothing_wrong(backup: Path, tmp_path: Path) -> None:
    restored(backup, tmp_path)
    folders = [tmp_path / f"controller-{voter.node_id}" for voter in VOTERS]
    assert verify_alone(folders, Options(whole=True)).findings == []


@pytest.mark.parametrize("share", [0.2, 0.5, 0.999])
def test_a_restore_to_an_offset_has_the_state_of_that_offset(
    share: float, history: Path, backup: Path, tmp_path: Path
) -> None:
    offset = int(source_of(history).end.log_end * share)
    found = restored(backup, tmp_path, CutPoint(offset=offset))
    whole = list(one_replica(str(history)).reader().batches())
    around = next(batch for batch in whole if batch.header.end_offset >= offset)
    assert found.kept.log_end == around.header.end_offset
    replica = one_replica(str(tmp_path / "controller-3"))
    assert verify_replica(replica).ok
    then = state_at(one_replica(str(history)), found.kept.log_end)
    assert state_at(replica, found.kept.log_end).image.state_hash == then.image.state_hash
    assert found.checkpoint == (found.facts.checkpoint.offset <= found.kept.log_end)


def test_a_restore_to_a_time_ends_before_the_first_later_batch(
    history: Path, backup: Path, tmp_path: Path
) -> None:
    batches = list(one_replica(str(history)).reader().batches())
    moment = batches[len(batches) // 3].header.timestamp_ms
    found = restored(backup, tmp_path, CutPoint(time_ms=moment))
    assert found.kept.timestamp_ms <= moment
    assert next(b for b in batches if b.header.timestamp_ms > moment).header.base_offset == (
        found.kept.log_end
    )


def test_moments_outside_of_the_log_are_refused(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="name a later one"):
        restored(backup, tmp_path / "before", CutPoint(time_ms=1))
    with pytest.raises(BackupError, match="its log ends at"):
        restored(backup, tmp_path / "after", CutPoint(offset=10**9))


def test_two_restores_of_one_backup_use_different_epochs(backup: Path, tmp_path: Path) -> None:
    """A broker that followed the first one must not take the second for the same history."""
    ends = [
        restored(backup, tmp_path / drawn.hex(), generation_id=drawn * 16).end.epoch
        for drawn in (b"\x00", b"\x01", b"\xfe")
    ]
    assert min(abs(ends[i] - ends[i - 1]) for i in range(3)) > 1_000
    assert min(ends) > 2**19


def test_an_open_transaction_is_discarded_and_the_generation_stays(tmp_path: Path) -> None:
    write_history(tmp_path, records=1_500, open_transaction=True, checkpoint_every=0)
    place = place_of(str(tmp_path / "backups"))
    made = create_backup(source_of(tmp_path / "controller-1"), place, WANTED, nothing)
    found = restored(Path(made.location), tmp_path / "new", segment_bytes=SEGMENT_BYTES)
    then = state_at(one_replica(str(tmp_path / "controller-1")), found.kept.log_end).image
    assert then.transaction is not None
    now = state_at(one_replica(str(tmp_path / "new/controller-1")), found.end.log_end).image
    assert now.transaction is None
    assert now.quorum.generation == found.generation


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.97, 0.9999999])
def test_a_flipped_byte_is_found_wherever_it_is(share: float, backup: Path, tmp_path: Path) -> None:
    data = bytearray(backup.read_bytes())
    data[int(len(data) * share)] ^= 0x10
    copy = tmp_path / backup.name
    copy.write_bytes(data)
    with pytest.raises(BackupError, match=r"Use another backup|format"):
        verify_backup(open_backup(str(copy)), nothing)
    with pytest.raises(BackupError):
        restored(copy, tmp_path / "new", cluster_id=source_cluster(backup))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9999999])
def test_a_truncated_backup_is_refused(share: float, backup: Path, tmp_path: Path) -> None:
    copy = tmp_path / backup.name
    copy.write_bytes(backup.read_bytes()[: int(backup.stat().st_size * share)])
    with pytest.raises(BackupError, match="Use another backup"):
        verify_backup(open_backup(str(copy)), nothing)


def test_bytes_behind_the_end_are_refused(backup: Path, tmp_path: Path) -> None:
    copy = tmp_path / backup.name
    copy.write_bytes(backup.read_bytes() + b"\0")
    with pytest.raises(BackupError, match="bytes behind the footer"):
        verify_backup(open_backup(str(copy)), nothing)


def test_a_backup_of_a_newer_format_is_named_as_such(backup: Path, tmp_path: Path) -> None:
    data = bytearray(backup.read_bytes())
    length = PREFIX.unpack_from(data)[3]
    data[5] = 2
    data[length - 4 : length] = crc32c(bytes(data[: length - 4])).to_bytes(4, "big")
    copy = tmp_path / backup.name
    copy.write_bytes(data)
    with pytest.raises(BackupError, match=r"format 2.*or a newer one"):
        verify_backup(open_backup(str(copy)), nothing)
    assert "format 2" in list_backups(place_of(str(tmp_path)))[0].problem


def test_another_clusters_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="correct cluster_id"):
        restored(backup, tmp_path, cluster_id="some-other-cluster-id-")


def test_a_damaged_source_makes_no_backup(history: Path, tmp_path: Path) -> None:
    folder = tmp_path / "controller-1"
    for path in history.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(history)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    segment = sorted((folder / "log").iterdir())[1]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    place = place_of(str(tmp_path / "backups"))
    with pytest.raises(SourceDamagedError, match="Back up another controller"):
        create_backup(source_of(folder), place, WANTED, nothing)
    assert place.names() == []
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_running_nodes_unfinished_tail_is_left_out(history: Path, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for path in sorted((history / "log").iterdir()):
        (tmp_path / "log" / path.name).write_bytes(path.read_bytes())
    last = max((tmp_path / "log").iterdir())
    last.write_bytes(last.read_bytes()[:-5])
    source = source_of(tmp_path)
    assert source.end.log_end < source_of(history).end.log_end
    written = bytearray()

    class Sink:
        def write(self, data: bytes) -> None:
            written.extend(data)

    facts = make_backup(source, Sink(), WANTED, nothing)
    assert facts.header.end == source.end
    assert facts.size == len(written)


def test_a_range_begins_with_the_segment_of_its_offset(history: Path, tmp_path: Path) -> None:
    source = source_of(history)
    base = source.segments[2][0]
    wanted = WantedBackup(WANTED.made_at_ms, "0.2.0", from_offset=base + 5)
    made = create_backup(source, place_of(str(tmp_path)), wanted, nothing)
    assert made.facts.header.start.log_end == base
    assert made.facts.records == source.end.log_end - base
    with pytest.raises(BackupError, match="nothing to back up"):
        make_backup(source, None, WantedBackup(0, "", source.end.log_end), nothing)


def test_the_newest_stay_and_others_are_left_alone(history: Path, tmp_path: Path) -> None:
    place, source = place_of(str(tmp_path)), source_of(history)
    names = [
        create_backup(source, place, WantedBackup(ms, "0.2.0"), nothing).name
        for ms in (1000, 2000, 3000)
    ]
    (tmp_path / "notes.txt").write_text("mine")
    broken = tmp_path / str(BackupName(500, 7))
    broken.write_bytes(b"no backup")
    assert thin_out(place, "another-cluster", 1, 3000) == []
    assert thin_out(place, source.cluster_id, 2, 3000) == names[:1]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [broken.name, *names[1:], "notes.txt"]
    )
    with pytest.raises(BackupError, match="already"):
        create_backup(source, place, WantedBackup(3000, "0.2.0"), nothing)


def test_a_backup_that_a_wrong_clock_dated_in_the_future_removes_no_other(
    history: Path, tmp_path: Path
) -> None:
    place, source = place_of(str(tmp_path)), source_of(history)
    year_ms = 365 * 24 * 3600 * 1000
    names = [
        create_backup(source, place, WantedBackup(ms, "0.2.0"), nothing).name
        for ms in (1000, year_ms, 2000)
    ]
    listed = list_backups(place)
    assert young_enough(listed, source.cluster_id, 9000, 1.0) is None
    assert young_enough(listed, source.cluster_id, 9000, 8.0).name == names[2]
    assert young_enough(listed, source.cluster_id, year_ms - 5, 8.0).name == names[1]
    assert young_enough(listed, "another-cluster", 9000, 8.0) is None
    assert thin_out(place, source.cluster_id, 1, 2000) == names[:1]
    assert place.names() == [names[2], names[1]]


def test_the_newest_backup_with_the_whole_history_stays(history: Path, tmp_path: Path) -> None:
    """A controller that lost the beginning of its log makes backups that lack it."""
    place, source = place_of(str(tmp_path)), source_of(history)
    base = max(base for base, _ in source.segments if base <= source.checkpoints[-1][0].offset)
    made = [(1000, 0), (2000, 0), (3000, base), (4000, base)]
    names = [
        create_backup(source, place, WantedBackup(ms, "0.2.0", offset), nothing).name
        for ms, offset in made
    ]
    assert all(each.header.checkpoint for each in list_backups(place))
    assert thin_out(place, source.cluster_id, 2, 4000) == names[:1]
    assert place.names() == names[1:]


def test_two_who_thin_out_one_place_at_once_are_no_failure(history: Path, tmp_path: Path) -> None:
    source = source_of(history)

    class Raced(DiskPlace):
        """Somebody else removes a backup after its name was listed."""

        def names(self):
            found = super().names()
            self.remove(found[0])
            return found

    for ms in (1000, 2000, 3000):
        create_backup(source, place_of(str(tmp_path)), WantedBackup(ms, "0.2.0"), nothing)
    assert len(list_backups(Raced(RealDisk(tmp_path), "there"))) == 2


def test_what_a_killed_process_left_goes_after_a_day(history: Path, tmp_path: Path) -> None:
    day_ms = 24 * 3600 * 1000
    old, young = (tmp_path / f"{BackupName(ms, 5)}.part" for ms in (1, day_ms))
    for path in (old, young):
        path.write_bytes(b"half a backup")
    create_backup(
        source_of(history), place_of(str(tmp_path)), WantedBackup(day_ms + 2, ""), nothing
    )
    assert not old.exists()
    assert young.exists()


def test_a_disk_that_fails_leaves_nothing(history: Path, tmp_path: Path) -> None:
    class Full(RealDisk):
        def open(self, name):
            file = super().open(name)
            write, file.append = file.append, self.full
            write(b"something")
            return file

        def full(self, data):
            raise OSError(28, "No space left on device")

    place = DiskPlace(Full(tmp_path), str(tmp_path))
    with pytest.raises(OSError, match="No space"):
        create_backup(source_of(history), place, WANTED, nothing)
    assert list(tmp_path.iterdir()) == []
