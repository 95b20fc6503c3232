"""Archives in a folder and in object storage: written, read by audits, gone, and damaged."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audit.places.archived_disk import ARCHIVE_VARIABLE
from audit.places.replicas import one_replica
from audit.places.segment_archive import open_archive
from ledger.archive_place import ArchivePlace
from ledger.errors import ArchiveDamagedError
from ledger.receipts import PLACE_NAME, Receipt
from ledger.segments import parse_segment_header, segment_name
from ledger.verify import verify_ledger
from tests.object_store import ObjectStore, object_store
from tests.unit.audit.nodes import write_node
from tests.unit.logberg.edge import run_whole


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store("archives") as running:
        yield running


@pytest.fixture(params=["folder", "objects"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "archive")
    running: ObjectStore = request.getfixturevalue("store")
    return f"s3://archives/{tmp_path.name}{running.options}"


def put(place: ArchivePlace, name: str, content: bytes) -> None:
    writer = place.create(name)
    for at in range(0, len(content), 1000):
        writer.write(content[at : at + 1000])
    writer.close()


def archived(node: Path, where: str, keep: int = 2) -> list[str]:
    """Move a node's segments but the last `keep` to an archive, as its controller would."""
    files = sorted((node / "log").glob("*.log"))
    headers = [parse_segment_header(file.read_bytes()[:4096])[0] for file in files]
    place = open_archive(where)
    (node / "receipts").mkdir()
    (node / PLACE_NAME).write_text(where)
    moved = files[:-keep]
    for file, header, after in zip(moved, headers, headers[1:], strict=False):
        content = file.read_bytes()
        put(place, file.name, content)
        receipt = Receipt(
            header.cluster_id,
            header.previous,
            after.previous,
            len(content),
            sha256(content).digest(),
        )
        (node / receipt.path).write_bytes(receipt.encode())
        file.unlink()
    return [file.name for file in moved]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_node(tmp_path / "controller-1", segment_bytes=2_000)
    return tmp_path / "controller-1"


def test_a_file_appears_when_it_is_whole(where: str) -> None:
    place, name = open_archive(where), segment_name(7)
    assert place.names() == []
    writer = place.create(name)
    writer.write(b"a part")
    assert place.names() == []
    writer.give_up()
    assert place.names() == []
    put(place, name, b"0123456789" * 300)
    assert place.names() == [name]
    assert place.read(name, 2995, 100) == b"56789"
    assert place.read(name, 3000, 100) == b""
    assert open_archive(where).read(name, 0, 10) == b"0123456789"
    with pytest.raises(OSError, match=r"No such file|not exist|not found|404"):
        place.read(segment_name(8), 0, 10)


class _NoDeletes:
    """A file system whose server stops answering when something is to be deleted."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def delete_file(self, path: str) -> None:
        raise OSError(f"{path}: no answer")


def test_what_was_given_up_never_has_a_segments_name(store: ObjectStore, tmp_path: Path) -> None:
    """Another controller would take a part for the segment, and find it damaged for ever."""
    place: Any = open_archive(f"s3://archives/{tmp_path.name}{store.options}")
    place._place._system = _NoDeletes(place._place._system)
    writer = place.create(segment_name(7))
    writer.write(b"a part")
    writer.give_up()
    assert place.names() == []
    put(place, segment_name(7), b"all of it")
    assert place.names() == [segment_name(7)]
    assert place.read(segment_name(7), 0, 100) == b"all of it"


def test_an_audit_of_the_folder_reads_the_archive(node: Path, where: str) -> None:
    whole = [batch.encoded for batch in one_replica(str(node)).reader().batches()]
    moved = archived(node, where)
    assert len(moved) > 2
    replica = one_replica(str(node))
    reader = replica.reader()
    assert reader.log_start == 0
    assert [batch.encoded for batch in reader.batches()] == whole
    report = verify_ledger(replica.disk)
    assert (report.ok, report.log_start, report.notes) == (True, 0, ())
    said = run_whole("log", "archive", "verify", str(node), "--output", "json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["segments"] == len(moved)
    assert "secret_key" not in said.both
    state = json.loads(run_whole("log", "archive", "state", str(node), "--output", "json").out)
    assert state[0]["fromOffset"] == 0
    assert state[0]["toOffset"] == state[0]["localFrom"]
    assert "secret_key" not in state[0]["place"]


def test_the_archive_itself_is_a_folder_of_segments(node: Path, tmp_path: Path) -> None:
    archived(node, str(tmp_path / "archive"))
    report = verify_ledger(one_replica(str(tmp_path / "archive")).disk)
    assert report.ok
    assert report.log_start == 0


def test_an_archive_that_is_gone_is_a_sentence(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "archive"
    archived(node, str(where))
    where.rename(tmp_path / "moved")
    for command in (("log", "verify"), ("log", "archive", "verify")):
        said = run_whole(*command, str(node))
        assert said.code == 1
        assert f"the archive {where} can't be read" in said.err
        assert ARCHIVE_VARIABLE in said.err
    assert run_whole("log", "dump", str(node), "--from", "0", "--to", "1").code == 1
    moved = run_whole("log", "archive", "verify", str(node), "--archive", str(tmp_path / "moved"))
    assert moved.code == 0, moved.err
    monkeypatch.setenv(ARCHIVE_VARIABLE, str(tmp_path / "moved"))
    assert run_whole("log", "verify", str(node)).code == 0


@pytest.mark.parametrize("harm", ["flip", "cut", "more", "another"])
def test_a_changed_copy_is_named_and_never_shown(node: Path, tmp_path: Path, harm: str) -> None:
    moved = archived(node, str(tmp_path / "archive"))
    file = tmp_path / "archive" / moved[1]
    content = bytearray(file.read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
    elif harm == "cut":
        del content[-10:]
    elif harm == "more":
        content += b"more"
    else:
        content[:] = (tmp_path / "archive" / moved[0]).read_bytes()
    file.write_bytes(content)
    reader = one_replica(str(node)).reader()
    with pytest.raises(ArchiveDamagedError, match=f"{file}, byte "):
        list(reader.batches())
    said = run_whole("log", "archive", "verify", str(node))
    assert said.code == 1
    assert f"{file}, byte " in said.err
    assert "docs/runbook.md" in said.err


def test_a_receipt_that_is_damaged_is_a_sentence(node: Path, tmp_path: Path) -> None:
    archived(node, str(tmp_path / "archive"))
    receipt = min((node / "receipts").glob("*.receipt"))
    content = bytearray(receipt.read_bytes())
    content[30] ^= 1
    receipt.write_bytes(content)
    said = run_whole("log", "archive", "verify", str(node))
    assert said.code == 1
    assert "is damaged" in said.err
