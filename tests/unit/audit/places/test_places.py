"""The forms of WHERE: each gives the same log, and nothing is written."""

import fcntl
import gzip
import random
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from audit.places.replicas import NoLogError, Replica, one_replica, open_all, open_replicas
from ledger.chain import LogMark
from ledger.errors import UnknownFormatError
from ledger.frame import finish_frame
from ledger.verify import verify_ledger
from quorum.journal.manifest import JournalManifest, encode_manifest
from tests.unit.audit.nodes import write_node

CONTROLLERS = ("controller-1", "controller-2", "controller-3")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("up")
    for name in CONTROLLERS:
        write_node(folder / name, checkpoint_every=100)
    return folder


@pytest.fixture(scope="module")
def contents(cluster: Path) -> list[bytes]:
    """Return every batch of a node."""
    return read(one_replica(str(cluster / "controller-1")))


def read(replica: Replica) -> list[bytes]:
    return [batch.encoded for batch in replica.reader().batches()]


def names(where: Path | str) -> list[str]:
    return [replica.name for replica in open_replicas(str(where))]


def test_a_node_its_log_and_the_folder_of_up(cluster: Path, contents: list[bytes]) -> None:
    assert names(cluster) == list(CONTROLLERS)
    assert names(cluster / "controller-2") == ["controller-2"]
    assert names(cluster / "controller-2" / "log") == ["controller-2"]
    assert names(f"file://{cluster}") == list(CONTROLLERS)
    assert all(read(replica) == contents for replica in open_replicas(str(cluster)))


def test_a_folder_of_nothing_but_segments(
    cluster: Path, contents: list[bytes], tmp_path: Path
) -> None:
    bare = tmp_path / "kept"
    shutil.copytree(cluster / "controller-1" / "log", bare)
    replica = one_replica(str(bare))
    assert (replica.name, replica.location) == ("kept", str(bare))
    assert read(replica) == contents
    assert replica.disk.list("checkpoints") == []


def test_segments_in_the_archive_folder_are_read_too(
    cluster: Path, contents: list[bytes], tmp_path: Path
) -> None:
    node = tmp_path / "node"
    shutil.copytree(cluster / "controller-1", node)
    (node / "archive").mkdir()
    first = min((node / "log").glob("*.log"))
    shutil.move(first, node / "archive" / first.name)
    assert read(one_replica(str(node))) == contents


def test_segments_compressed_one_by_one(
    cluster: Path, contents: list[bytes], tmp_path: Path
) -> None:
    node = tmp_path / "node"
    shutil.copytree(cluster / "controller-1", node)
    for path in sorted((node / "log").glob("*.log"))[:-1]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    replica = one_replica(str(node))
    assert read(replica) == contents
    assert verify_ledger(replica.disk).ok


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "zip"])
def test_archives(cluster: Path, contents: list[bytes], tmp_path: Path, suffix: str) -> None:
    of_node, of_cluster = tmp_path / f"node.{suffix}", tmp_path / f"up.{suffix}"
    pack(cluster / "controller-1", of_node, ".")
    pack(cluster, of_cluster, "saved")
    assert names(of_node) == ["node"]
    assert names(of_cluster) == list(CONTROLLERS)
    for replica in (one_replica(str(of_node)), *open_replicas(str(of_cluster))):
        assert read(replica) == contents
        assert verify_ledger(replica.disk).ok
        assert replica.disk.list("checkpoints")
        assert not replica.live


def pack(folder: Path, target: Path, inner: str) -> None:
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(folder.rglob("*")):
                packed.write(path, f"{inner}/{path.relative_to(folder)}")
        return
    with tarfile.open(target, "w" if target.suffix == ".tar" else "w:gz") as tar:
        tar.add(folder, inner)


def test_a_zstandard_archive(cluster: Path, contents: list[bytes], tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    plain = tmp_path / "node.tar"
    pack(cluster / "controller-1", plain, "node")
    packed = tmp_path / "node.tar.zst"
    with pyarrow.CompressedOutputStream(str(packed), "zstd") as out:
        out.write(plain.read_bytes())
    assert read(one_replica(str(packed))) == contents


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("node.tar", b"not an archive" * 100),
        ("node.tar.gz", b"not an archive" * 100),
        ("node.zip", b"not an archive" * 100),
        ("node.tar.gz", gzip.compress(random.Random(1).randbytes(2_000))[:1_000]),
    ],
    ids=["tar", "tar.gz", "zip", "cut"],
)
def test_foreign_and_cut_archives_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NoLogError, match="damaged, cut off, or not an archive"):
        open_replicas(str(tmp_path / name))


def test_a_compressed_segment_that_was_cut_off_is_said(cluster: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(cluster / "controller-1", node)
    first = min((node / "log").glob("*.log"))
    packed = gzip.compress(first.read_bytes())
    first.with_name(f"{first.name}.gz").write_bytes(packed[: len(packed) // 2])
    first.unlink()
    with pytest.raises(OSError, match="can't be unpacked"):
        verify_ledger(one_replica(str(node)).disk)
    report = verify_ledger(one_replica(str(node)).disk, keep_going=True)
    assert "can't be unpacked" in report.findings[0].sentence
    assert report.records > 0


def test_what_is_not_there_foreign_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoLogError, match="is not there"):
        open_replicas(str(tmp_path / "nowhere"))
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NoLogError, match="not that of an archive"):
        open_replicas(str(tmp_path / "notes.txt"))
    with pytest.raises(NoLogError, match="holds no log"):
        open_replicas(str(tmp_path))
    (tmp_path / "log").mkdir()
    with pytest.raises(NoLogError, match="no ledger is here"):
        one_replica(str(tmp_path)).reader()


def test_a_newer_format_is_named_with_its_file(cluster: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(cluster / "controller-1", node)
    first = min((node / "log").glob("*.log"))
    data = first.read_bytes()
    length = int.from_bytes(data[8:12], "big")
    newer = finish_frame(data[:4] + (2).to_bytes(2, "big") + data[6 : length - 4])
    first.write_bytes(newer + data[length:])
    with pytest.raises(UnknownFormatError, match=rf"{first.name}: format 2 .* newer release"):
        one_replica(str(node)).reader()


def test_of_several_the_longest_is_the_one(tmp_path: Path) -> None:
    write_node(tmp_path / "controller-1", batches=30)
    write_node(tmp_path / "controller-2", batches=60)
    (tmp_path / "controller-3" / "log").mkdir(parents=True)
    assert one_replica(str(tmp_path)).name == "controller-2"


def test_names_are_unique_when_places_are_opened_together(cluster: Path, tmp_path: Path) -> None:
    shutil.copytree(cluster / "controller-1", tmp_path / "controller-1")
    opened = open_all([str(cluster), str(tmp_path)])
    assert len({replica.name for replica in opened}) == len(opened) == 4
    assert len(open_all([str(cluster), str(cluster / "controller-1")])) == 3


def test_a_node_may_be_writing_where_it_has_a_journal_or_the_lock(tmp_path: Path) -> None:
    node = tmp_path / "node"
    write_node(node)
    assert not one_replica(str(node)).live
    with (node / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert one_replica(str(node)).live
    (node / "journal").mkdir()
    assert one_replica(str(node)).live


def test_the_manifest_says_what_was_synced(tmp_path: Path) -> None:
    node = tmp_path / "node"
    write_node(node)
    assert one_replica(str(node)).synced_to is None
    mark = LogMark(41, bytes(range(32)), 3, 1_700_000_000_000)
    first, second = (b"entry", 1, 1), (b"entry", 2, 1)
    written = encode_manifest(JournalManifest("c", first, second, mark.encode(), ()))
    (node / "manifest").write_bytes(written)
    assert one_replica(str(node)).synced_to == mark
    (node / "manifest").write_bytes(written[:-1] + b"\x00\x00")
    assert "manifest can't be read" in one_replica(str(node)).problem


def test_a_segment_that_moves_to_the_archive_while_it_is_read(tmp_path: Path) -> None:
    node = tmp_path / "node"
    write_node(node)
    before = read(one_replica(str(node)))
    replica = one_replica(str(node))
    batches = replica.reader().batches()
    read_before = [next(batches).encoded for _ in range(2)]
    (node / "archive").mkdir()
    for path in sorted((node / "log").glob("*.log"))[:-1]:
        shutil.move(path, node / "archive" / path.name)
    assert read_before + [batch.encoded for batch in batches] == before


def test_nothing_is_written_anywhere(cluster: Path, tmp_path: Path) -> None:
    replica = one_replica(str(cluster))
    for change in (
        lambda: replica.disk.open("log/x"),
        lambda: replica.disk.replace("x", b""),
        lambda: replica.disk.unlink("x"),
        lambda: replica.disk.rename("x", "y"),
        lambda: replica.disk.make_folder("x"),
        lambda: replica.disk.sync_folder("log"),
        lambda: replica.disk.in_background(int, print),
    ):
        with pytest.raises(OSError, match="only read"):
            change()
