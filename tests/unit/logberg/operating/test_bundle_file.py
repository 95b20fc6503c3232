"""The file of a support bundle: only its user can read it, and it is whole or not there."""

import tarfile
from pathlib import Path

import pytest

from logberg.operating.support_bundle import write_bundle
from runtime.disk.secret_file import SecretFileError
from tests.unit.logberg.edge import run_whole

FILES = {"about.json": b"{}", "log/newest-batches.jsonl": b""}


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "help.tar.gz"
    write_bundle(path, FILES)
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as tar:
        assert tar.getnames() == [f"logberg-support/{name}" for name in FILES]
    with pytest.raises(SecretFileError, match="is there already"):
        write_bundle(path, {})


def test_half_a_file_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(SecretFileError, match="No space left"):
        write_bundle(tmp_path / "help.tar.gz", FILES)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "help.tar.gz"
    path.write_bytes(b"mine")
    said = run_whole("support-bundle", str(path), "--controllers", "http://127.0.0.1:9")
    assert (said.code, "is there already" in said.err) == (1, True)
    assert path.read_bytes() == b"mine"
