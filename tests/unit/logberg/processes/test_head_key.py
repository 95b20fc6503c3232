"""The key that signs heads: drawn once, private, and its public half beside it."""

import stat
from pathlib import Path

import pytest

from controller.signing.own_keys import FILE, PUBLIC_FILE
from ledger.merkle.notes import NoteKey, SigningKey
from logberg.processes.head_key import load_head_key
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError, load
from tests.unit.logberg.processes.settings.test_settings import write


def settings(folder: Path, **more: object) -> tuple[ControllerSettings, Path]:
    path = write(folder, **more)
    return load(path, ControllerSettings), path


def test_the_first_start_draws_it_and_later_ones_read_it(tmp_path: Path) -> None:
    where = settings(tmp_path)
    seed = load_head_key(*where)
    path = tmp_path / "data" / FILE
    assert len(seed) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_head_key(*where) == seed
    public = NoteKey.parse((tmp_path / "data" / PUBLIC_FILE).read_text())
    assert public == SigningKey("logberg/c", seed).public
    (tmp_path / "data" / PUBLIC_FILE).unlink()
    assert load_head_key(*where) == seed
    assert (tmp_path / "data" / PUBLIC_FILE).exists()


def test_without_signing_there_is_none(tmp_path: Path) -> None:
    assert load_head_key(*settings(tmp_path, signed_head_ms=0)) == b""
    assert not (tmp_path / "data").exists()


def test_a_key_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    where = settings(tmp_path)
    load_head_key(*where)
    path = tmp_path / "data" / FILE
    path.write_text("00\n")
    with pytest.raises(SettingsError, match="the key that signs heads"):
        load_head_key(*where)
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        load_head_key(*where)
