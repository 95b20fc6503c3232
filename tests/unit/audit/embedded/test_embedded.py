"""The embedded jobs: frames on disk, damage, replicas that differ, logs that were cut."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from audit.embedded import run_job
from audit.generated import write_history
from audit.places.folder import LocalTree
from audit.places.replicas import NoLogError, open_replicas
from audit.places.tree_disk import TreeDisk
from ledger.batch import HEAD, seal
from ledger.frame import crc32c
from ledger.scan import walk_frames
from ledger.segments import HEADER_BYTES_MAX, parse_segment_header
from metadata.image import EMPTY
from metadata.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.unit.audit.memory_log import logged, replica_of
from tests.unit.audit.reading.test_folders import write_node

DAY_MS = 86_400_000
TOPIC = b"\x07" * 16


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    for node in ("controller-1", "controller-2", "controller-3"):
        write_node(folder / node)
    return folder


@pytest.fixture
def cluster(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "cluster"))


def first_segment(node: Path) -> Path:
    return min((node / "log").glob("*.log"))


def frames_of(path: Path) -> list[tuple[int, int, tuple]]:
    """(position, length, head) of each frame of a segment."""
    disk = TreeDisk(LocalTree(path.parent))
    _, begin = parse_segment_header(disk.read(path.name, 0, HEADER_BYTES_MAX))
    return [
        (found.position, found.length, HEAD.unpack_from(found.window, found.start))
        for found in walk_frames(disk, path.name, begin)
    ]


def test_batches_are_every_frame_of_every_replica(cluster: Path) -> None:
    rows: list[Any] = run_job("batches", open_replicas(str(cluster)))
    for node in ("controller-1", "controller-2", "controller-3"):
        mine = [row for row in rows if row[0] == node]
        reader = open_replicas(str(cluster / node))[0].reader()
        assert [(row[1], row[3], row[4], row[5], row[6], row[7]) for row in mine] == [
            (
                batch.header.base_offset,
                batch.header.count,
                batch.header.epoch,
                batch.header.timestamp_ms,
                batch.header.previous_hash.hex(),
                batch.hash.hex(),
            )
            for batch in reader.batches()
        ]
        assert all(row[8] for row in mine)
        bases = sorted(int(path.stem) for path in (cluster / node / "log").glob("*.log"))
        assert len(bases) > 1
        for row in mine:
            assert row[2] == f"{max(base for base in bases if base <= row[1]):020d}.log"


def test_a_sound_cluster_has_no_findings_and_does_not_diverge(cluster: Path) -> None:
    replicas = open_replicas(str(cluster))
    assert run_job("integrity", replicas) == []
    assert run_job("divergence", replicas) == []


def test_a_flipped_byte_is_found_by_checksum_and_by_the_chain(cluster: Path) -> None:
    path = first_segment(cluster / "controller-2")
    position, length, head = frames_of(path)[3]
    data = bytearray(path.read_bytes())
    data[position + length - 20] ^= 1
    path.write_bytes(data)
    base, end = head[5], head[5] + head[4]
    replicas = open_replicas(str(cluster))
    assert [(row[0], row[1], row[3]) for row in run_job("integrity", replicas)] == [
        ("controller-2", base, "crc"),
        ("controller-2", end, "chain"),
    ]
    (row,) = run_job("divergence", replicas)
    assert row[:2] == (base, "controller-2")
    assert row[2] != row[3]
    assert [row for row in run_job("batches", replicas) if not row[8]] == [
        row for row in run_job("batches", replicas) if row[:2] == ("controller-2", base)
    ]


def rewritten(path: Path, number: int, at: int, value: bytes) -> int:
    """Change bytes of a frame and give it a right checksum; return its base offset."""
    position, length, head = frames_of(path)[number]
    data = bytearray(path.read_bytes())
    data[position + at : position + at + len(value)] = value
    frame = bytes(data[position : position + length - 4])
    data[position + length - 4 : position + length] = crc32c(frame).to_bytes(4, "big")
    path.write_bytes(data)
    return head[5]


def test_a_batch_with_a_right_checksum_breaks_the_chain_at_the_next(cluster: Path) -> None:
    path = first_segment(cluster / "controller-1")
    rewritten(path, 4, 32, (10**12).to_bytes(8, "big"))  # the timestamp
    after = frames_of(path)[5][2][5]
    assert [row[:2] + row[3:4] for row in run_job("integrity", open_replicas(str(cluster)))] == [
        ("controller-1", frames_of(path)[4][2][5], "time"),
        ("controller-1", after, "chain"),
    ]


def test_a_dropped_batch_is_a_gap(cluster: Path) -> None:
    path = first_segment(cluster / "controller-1")
    position, length, head = frames_of(path)[4]
    data = path.read_bytes()
    path.write_bytes(data[:position] + data[position + length :])
    (row,) = run_job("integrity", open_replicas(str(cluster / "controller-1")))
    assert row[1:4] == (head[5] + head[4], path.name, "gap")
    assert row[4] == f"offset {head[5]} must follow, the batch begins at {head[5] + head[4]}"


def test_falling_epochs_and_a_wrong_beginning_are_found(cluster: Path) -> None:
    """Both have a right chain, so only the writer of the history can have made them."""
    path = first_segment(cluster / "controller-1")
    frames = frames_of(path)
    data = path.read_bytes()
    reader = open_replicas(str(cluster / "controller-1"))[0].reader()
    sound = list(reader.batches(None, frames[2][2][5]))
    first = seal(replace(sound[0].header, epoch=99, previous_hash=bytes(32)), sound[0].records)
    second = seal(replace(sound[1].header, previous_hash=first.hash), sound[1].records)
    path.write_bytes(data[: frames[0][0]] + first.encoded + second.encoded + data[frames[2][0] :])
    found = run_job("integrity", open_replicas(str(cluster / "controller-1")))
    assert [(row[1], row[3]) for row in found] == [
        (0, "chain"),
        (second.header.base_offset, "epoch"),
        (frames[2][2][5], "chain"),
    ]


def test_an_unfinished_tail_is_no_finding_and_its_frame_no_row(cluster: Path) -> None:
    last = max((cluster / "controller-1" / "log").glob("*.log"))
    whole = len(run_job("batches", open_replicas(str(cluster / "controller-1"))))
    last.write_bytes(last.read_bytes()[:-5])
    replicas = open_replicas(str(cluster / "controller-1"))
    assert len(run_job("batches", replicas)) == whole - 1
    assert run_job("integrity", replicas) == []


def test_without_a_majority_all_that_differ_are_named(cluster: Path) -> None:
    two = [open_replicas(str(cluster / f"controller-{n}"))[0] for n in (1, 2)]
    path = first_segment(cluster / "controller-2")
    base = rewritten(path, 2, 32, (2 * 10**12).to_bytes(8, "big"))
    rows: list[Any] = run_job("divergence", two)
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (base, "controller-1", None),
        (base, "controller-2", None),
    ]


def test_a_replica_is_named_once_where_it_first_differs(cluster: Path) -> None:
    path = first_segment(cluster / "controller-2")
    first, _ = [rewritten(path, n, 32, (2 * 10**12).to_bytes(8, "big")) for n in (2, 4)]
    rows: list[Any] = run_job("divergence", open_replicas(str(cluster)))
    assert [row[:2] for row in rows] == [(first, "controller-2")]


def test_replicas_are_held_against_each_other_up_to_the_shortest_s_end(cluster: Path) -> None:
    (cluster / "controller-3" / "log").joinpath(
        max((cluster / "controller-3" / "log").glob("*.log")).name
    ).unlink()
    path = max((cluster / "controller-2" / "log").glob("*.log"))
    rewritten(path, 1, 32, (2 * 10**12).to_bytes(8, "big"))
    assert run_job("divergence", open_replicas(str(cluster))) == []


def test_a_cut_log_is_counted_from_its_first_checkpoint(tmp_path: Path) -> None:
    write_history(tmp_path, records=4_000, seed=3, segment_bytes=60_000, checkpoint_every=900)
    whole = open_replicas(str(tmp_path))
    node = tmp_path / "controller-1"
    full = {name: run_job(name, whole) for name in ("partition_intervals", "state", "changes")}
    segments = sorted((node / "log").glob("*.log"))
    for path in segments[:4]:
        path.unlink()
    begin = int(segments[4].stem)
    checkpoint = min(
        int(path.name[:20])
        for path in (node / "checkpoints").glob("*.checkpoint")
        if int(path.name[:20]) >= begin
    )
    replicas, notes = open_replicas(str(tmp_path)), []
    rows: list[Any] = run_job("partition_intervals", replicas, notes=notes)
    (note,) = notes
    assert note.endswith(
        f"history begins at offset {begin}; "
        f"counting begins at the checkpoint at offset {checkpoint}"
    )
    assert min(row.from_offset for row in rows) == checkpoint - 1
    later = [row for row in full["partition_intervals"] if (row[4] or 2**63) >= checkpoint]
    assert [row[:2] + row[3:5] + row[6:] for row in rows] == [
        row[:2] + row[3:5] + row[6:] for row in later
    ]
    assert [max(row[2], checkpoint - 1) for row in later] == [row[2] for row in rows]
    assert run_job("state", replicas) == full["state"]
    assert (
        0
        < sum(row[4] for row in run_job("changes", replicas))
        < sum(row[4] for row in full["changes"])
    )
    log = run_job("log", replicas)
    assert log[0][0] == begin
    for path in (node / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(
        NoLogError, match=f"history begins at offset {begin}, and there is no checkpoint"
    ):
        run_job("changes", replicas)
    assert len(run_job("log", replicas)) == len(log)


def test_an_offset_behind_the_log_s_end_is_refused() -> None:
    with pytest.raises(NoLogError, match="the log ends at offset 1, before 2"):
        run_job("changes", [replica_of(logged([FeatureLevelRecord("f", 1)]))], up_to=2)


def test_an_empty_log_has_no_rows() -> None:
    for name in ("log", "partition_events", "availability", "changes", "privileged"):
        assert run_job(name, [replica_of([])]) == []
    rows: list[Any] = run_job("state", [replica_of([])])
    assert {row[1] for row in rows} == {0}
    assert EMPTY.state_hash is not None


def test_privileged_changes_are_told_with_their_subject() -> None:
    acl = AccessControlEntryRecord(b"\x01" * 16, 2, "orders", 3, "User:eve", "*", 2, 3)
    partition = PartitionRecord(0, TOPIC, (1, 2), (1,), (), (), 1, 0, 0)
    batches = logged(
        [acl, FeatureLevelRecord("metadata.version", 20)],
        [TopicRecord("orders", TOPIC), partition],
        [PartitionChangeRecord(0, TOPIC, leader=2, leader_recovery_state=1)],
        [PartitionChangeRecord(0, TOPIC, leader=-1, leader_recovery_state=1)],
        [PartitionChangeRecord(0, TOPIC, leader_recovery_state=1)],
        [PartitionChangeRecord(0, TOPIC, leader=1, leader_recovery_state=0)],
        [ConfigRecord(2, "orders", "unclean.leader.election.enable", "true")],
        [ConfigRecord(2, "orders", "unclean.leader.election.enable", None)],
        [UserScramCredentialRecord("eve", 1, b"salt", b"k", b"k", 4096)],
    )
    rows: list[Any] = run_job("privileged", [replica_of(batches)])
    assert [(row[0], row[3], row[4]) for row in rows] == [
        (0, "acl", "acl:AQEBAQEBAQEBAQEBAQEBAQ"),
        (1, "feature", "feature:metadata.version"),
        (4, "unclean_election", "partition:orders-0"),
        (8, "unclean_election", "config:topic:orders:unclean.leader.election.enable"),
        (10, "user", "user:eve"),
    ]
    assert "***" in rows[-1][-1]


def test_a_topic_s_own_min_isr_goes_with_it_and_a_new_life_has_the_default() -> None:
    partition = PartitionRecord(0, TOPIC, (1, 2), (1,), (), (), 1, 0, 0)
    reborn = b"\x08" * 16
    batches = logged(
        [ConfigRecord(4, "", "min.insync.replicas", "1")],
        [TopicRecord("orders", TOPIC), partition],
        [ConfigRecord(2, "orders", "min.insync.replicas", "2")],
        [RemoveTopicRecord(TOPIC)],
        [TopicRecord("orders", reborn), PartitionRecord(0, reborn, (1,), (1,), (), (), 1, 0, 0)],
    )
    rows: list[Any] = run_job("partition_intervals", [replica_of(batches)])
    assert [(row[2], row[4], row[10], row[12]) for row in rows] == [
        (1, 3, 1, False),
        (3, 4, 2, True),
        (5, None, 1, False),
    ]


def test_a_day_is_cut_at_midnight_utc_and_leader_changes_fall_on_their_day() -> None:
    begin = 1_700_000_000_000 // DAY_MS * DAY_MS + DAY_MS
    partition = PartitionRecord(0, TOPIC, (1, 2), (1,), (), (), -1, 0, 0)
    batches = logged(
        [TopicRecord("orders", TOPIC), partition],
        [PartitionChangeRecord(0, TOPIC, leader=1)],
        [PartitionChangeRecord(0, TOPIC, leader=1)],
        step_ms=DAY_MS,
    )
    rows: list[Any] = run_job("availability", [replica_of(batches)])
    to_midnight = begin - 1_700_000_000_000
    assert [row[2:] for row in rows] == [
        ("2023-11-14", to_midnight, to_midnight, 0, 0, 0),
        ("2023-11-15", DAY_MS, DAY_MS - to_midnight, 0, 0, 1),
        ("2023-11-16", DAY_MS - to_midnight, 0, 0, 0, 0),
    ]
    assert {row[:2] for row in rows} == {("partition", "orders-0@BwcHBwcHBwcHBwcHBwcHBw")}


def test_a_broker_that_registers_again_keeps_its_state_unless_it_is_a_new_process() -> None:
    old, new = b"\x01" * 16, b"\x02" * 16
    batches = logged(
        [RegisterBrokerRecord(3, old, 0, (), (), None)],
        [BrokerRegistrationChangeRecord(3, 0, fenced=-1)],
        [RegisterBrokerRecord(3, old, 0, (), (), "rack")],
        [BrokerRegistrationChangeRecord(3, 0, in_controlled_shutdown=1)],
        [BrokerRegistrationChangeRecord(3, 0, fenced=1)],
        [RegisterBrokerRecord(3, new, 5, (), (), None, False)],
    )
    rows: list[Any] = run_job("broker_intervals", [replica_of(batches)])
    assert [(row[1], row[2], row[5]) for row in rows] == [
        (0, 1, "fenced"),
        (1, 3, "online"),
        (3, 4, "stopping"),
        (4, 5, "fenced"),
        (5, None, "online"),
    ]


def test_progress_is_told_and_another_name_is_no_job() -> None:
    said: list[tuple[int, int]] = []
    batches = logged(*[[FeatureLevelRecord("f", 1)]] * 2_050)
    run_job("changes", [replica_of(batches)], on_progress=lambda *at: said.append(at))
    assert said == [(1_024, 2_050), (2_048, 2_050)]
    with pytest.raises(KeyError):
        run_job("nothing", [])
