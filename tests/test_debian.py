"""What is missing is said, or installed once where that is meant to work."""

import subprocess
from pathlib import Path

import pytest

from tests import debian
from tests.debian import NotInstalledError, install


def test_without_root_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian.shutil, "which", lambda _: None)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    with pytest.raises(NotInstalledError, match="fuse3 is not installed"):
        install("fuse3", is_there=lambda: False)


def test_root_with_apt_installs_it_with_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there: set[str] = set()
    ran = []

    def run(command: list[str], **_: object) -> None:
        ran.append(command[2])
        if command[2] == "install":
            there.update(command[4:])

    monkeypatch.setattr(debian.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(debian.shutil, "which", lambda name: name)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.subprocess, "run", run)
    for _ in range(2):
        install("one", "other", is_there=lambda: {"one", "other"} <= there)
    assert ran == ["update", "install"]
    assert capsys.readouterr().err.count("\n") == 1


def test_a_package_that_brings_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(debian.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(debian.shutil, "which", lambda name: name)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(NotInstalledError, match="not on the path"):
        install("fuse3", is_there=lambda: False)


def test_an_apt_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(100, command)

    monkeypatch.setattr(debian.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(debian.shutil, "which", lambda name: name if name == "apt-get" else None)
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setattr(debian.subprocess, "run", run)
    with pytest.raises(NotInstalledError, match="update failed"):
        install("fuse3", is_there=lambda: False)
