"""Replay, dump and agreement over folders on disk, without a cluster."""

import shutil
from pathlib import Path

import pytest
import structlog

from audit.places.replicas import NoLogError, one_replica, open_replicas
from audit.questions.agreement import agree
from audit.questions.state import ClusterState, state_at
from audit.reading.dump import dump
from audit.reading.moments import MomentError
from ledger.batch import BatchHeader, Provenance, seal
from ledger.ledger import Ledger
from metadata.codec import decode_records, encode_records
from metadata.image import EMPTY, MetadataDelta
from runtime.disk.real import RealDisk
from tests.histories import History

CLUSTER = "audited-cluster"


class InlineDisk(RealDisk):
    """Background work at once: these tests have no loop."""

    def in_background(self, work, on_done):
        on_done(work(), None)


def write_node(folder: Path, batches: int = 60, seed: int = 1, segment_bytes: int = 8_192) -> None:
    """A node's folder with a log of legal history."""
    disk = InlineDisk(folder)
    disk.make_folder("log")
    ledger = Ledger.open(
        disk, CLUSTER, synced_to=None, segment_bytes=segment_bytes, log=structlog.get_logger()
    )
    for number, written in enumerate(History(seed).batches(batches)):
        header = BatchHeader(
            written.base_offset,
            len(written.records),
            written.epoch,
            written.timestamp_ms,
            Provenance(principal="User:alice", operation="Test", reason=f"step {number}"),
            ledger.head,
        )
        ledger.accept(written.epoch, seal(header, encode_records(written.records)))
    ledger.close()
    disk.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    for node in ("controller-1", "controller-2", "controller-3"):
        write_node(tmp_path / node)
    return tmp_path


def replay(folder: Path, to_offset: int | None = None) -> ClusterState:
    replica = one_replica(str(folder))
    end = replica.reader().log_end if to_offset is None else to_offset
    return state_at(replica, end, snapshots=False)


def test_equal_logs_agree_and_replay_to_one_state(cluster: Path) -> None:
    found = agree(open_replicas(str(cluster)))
    assert found.ok
    states = [replay(Path(log.replica.location)) for log in found.logs]
    assert len({state.state_hash.encode() for state in states}) == 1
    assert states[0].image.offset == found.comparison.common_offset
    assert states[0].head == found.logs[0].report.head


def test_replay_gives_the_state_that_the_records_give(cluster: Path) -> None:
    folder = cluster / "controller-1"
    image = EMPTY
    for batch in one_replica(str(folder)).reader().batches():
        delta = MetadataDelta(image)
        header = batch.header
        delta.replay_all(decode_records(batch.records), header.base_offset)
        delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        image = delta.apply()
        at = replay(folder, to_offset=header.end_offset)
        assert at.image.same_state(image)
        assert at.image.state_hash == image.state_hash


def test_a_flipped_byte_is_named_and_the_others_still_agree(cluster: Path) -> None:
    segment = sorted((cluster / "controller-2" / "log").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0x10
    segment.write_bytes(data)
    found = agree(open_replicas(str(cluster)))
    assert not found.ok
    bad = [log for log in found.logs if not log.report.ok]
    assert [log.replica.name for log in bad] == ["controller-2"]
    finding = bad[0].report.first_bad
    assert finding is not None
    assert finding.file == f"log/{segment.name}"
    assert finding.position <= len(data) // 2
    assert not found.problem
    assert found.comparison.agreed == ("controller-1", "controller-2", "controller-3")


def test_logs_that_tell_two_stories_are_held_against_each_other(tmp_path: Path) -> None:
    write_node(tmp_path / "controller-1", seed=1)
    write_node(tmp_path / "controller-2", seed=2)
    found = agree(open_replicas(str(tmp_path)))
    assert "controller-2 differs from controller-1 from offset 0 on" in found.problem


def test_a_log_that_ends_earlier_is_not_another_story(tmp_path: Path) -> None:
    write_node(tmp_path / "controller-1", batches=60)
    write_node(tmp_path / "controller-2", batches=40)
    found = agree(open_replicas(str(tmp_path)))
    assert found.ok
    assert found.comparison.common_offset == min(log.report.log_end for log in found.logs)


def test_dump_says_who_when_and_why_with_offsets(cluster: Path) -> None:
    batches = list(dump(one_replica(str(cluster / "controller-1")).reader()))
    assert batches[0]["principal"] == "User:alice"
    assert batches[3]["reason"] == "step 3"
    assert batches[0]["time"].startswith("2023-11-")
    offsets = [record["offset"] for batch in batches for record in batch["records"]]
    assert offsets == list(range(len(offsets)))


def test_secrets_are_starred_unless_asked_for(cluster: Path) -> None:
    folder = cluster / "controller-1"
    kind = "USER_SCRAM_CREDENTIAL_RECORD"
    starred, shown = (
        [
            record["data"]["storedKey"]
            for batch in dump(one_replica(str(folder)).reader(), show_secrets=show_secrets)
            for record in batch["records"]
            if record["type"] == kind
        ]
        for show_secrets in (False, True)
    )
    assert starred
    assert set(starred) == {"***"}
    assert "***" not in shown


def test_reading_changes_nothing(cluster: Path) -> None:
    before = snapshot_of(cluster)
    folder = cluster / "controller-1"
    replay(folder)
    list(dump(one_replica(str(folder)).reader()))
    agree(open_replicas(str(folder)))
    assert snapshot_of(cluster) == before


def snapshot_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_offset_beyond_the_end_is_refused(cluster: Path) -> None:
    with pytest.raises(MomentError, match="ends at offset"):
        replay(cluster / "controller-1", to_offset=10**9)


def test_history_that_was_cut_needs_a_snapshot(cluster: Path) -> None:
    folder = cluster / "controller-1"
    first = min((folder / "log").glob("*.log"))
    shutil.move(first, cluster / "elsewhere")
    with pytest.raises(NoLogError, match="no snapshot between"):
        replay(folder)
