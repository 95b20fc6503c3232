"""Where a browser is missing: said, or installed once where that is meant to work."""

import subprocess
from pathlib import Path

import pytest

from tests.report import chromium
from tests.report.chromium import NoBrowserError, programs


def test_without_root_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium.shutil, "which", lambda _: None)
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 1000)
    with pytest.raises(NoBrowserError, match="are not installed"):
        programs()


def test_root_with_apt_installs_it_with_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"apt-get"}
    ran = []

    def run(command: list[str], **_: object) -> None:
        ran.append(command[2])
        if command[2] == "install":
            there.update(command[4:], ["chromedriver"])

    monkeypatch.setattr(chromium.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(chromium.shutil, "which", lambda name: name if name in there else None)
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    monkeypatch.setattr(chromium.subprocess, "run", run)
    assert programs() == ("chromium", "chromedriver")
    assert ran == ["update", "install"]
    assert capsys.readouterr().err.count("\n") == 1


def test_an_apt_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(100, command)

    monkeypatch.setattr(chromium.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(chromium.shutil, "which", lambda name: name if name == "apt-get" else None)
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    monkeypatch.setattr(chromium.subprocess, "run", run)
    with pytest.raises(NoBrowserError, match="could not install"):
        programs()
