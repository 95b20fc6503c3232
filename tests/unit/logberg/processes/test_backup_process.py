"""The process that makes a node's scheduled backups: what happens when it fails or hangs."""

import asyncio
import sys
from pathlib import Path

import pytest

from logberg.backups.schedule import Looked
from logberg.processes import backup_process
from logberg.processes.backup_process import BackupProcess
from logberg.processes.settings.controller_settings import BackupSettings


def process(tmp_path: Path) -> BackupProcess:
    return BackupProcess(BackupSettings(where="backups"), str(tmp_path), tmp_path / "data")


async def looked(one: BackupProcess) -> list[Looked | str]:
    found: list[Looked | str] = []
    one.start(10.0, found.append)
    await one.ended()
    return found


def test_whatever_goes_wrong_at_its_start_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule looks again only after an answer."""

    def fail(_parent: int) -> None:
        raise RuntimeError("no such call here")

    monkeypatch.setattr(backup_process, "die_with", fail)
    (found,) = asyncio.run(looked(process(tmp_path)))
    assert "the backup's process failed" in str(found)


def test_a_process_that_hangs_does_not_keep_the_node_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    monkeypatch.setattr(backup_process, "_PROGRAM", (sys.executable, "-c", deaf))
    monkeypatch.setattr(backup_process, "_END_S", 1.0)

    async def stopped() -> list[Looked | str]:
        one, found = process(tmp_path), []
        one.start(10.0, found.append)
        await asyncio.sleep(0.5)
        one.stop()
        await asyncio.wait_for(one.ended(), 60)
        return found

    assert asyncio.run(stopped()) == ["it said nothing"]
