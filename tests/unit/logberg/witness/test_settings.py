"""A witness's settings, key and folder."""

import stat
from pathlib import Path

import pytest

from ledger.merkle.notes import COSIGNATURE, NoteKey, SigningKey
from logberg.processes.settings.settings_files import SettingsError
from logberg.witness.settings import (
    KEY_FILE,
    PUBLIC_FILE,
    WitnessedLogSettings,
    WitnessSettings,
    check_witness,
    open_folder,
    witnessed_logs,
)
from logberg.witness.state import STATE
from runtime.disk.real import RealDisk

LINES = tuple(SigningKey("logberg/c", bytes((n,)) * 32).public.text for n in (1, 2, 3))


def settings(**more) -> WitnessSettings:
    given = {"name": "w", "data": "d", "logs": (WitnessedLogSettings(keys=LINES),), **more}
    return WitnessSettings(**given)


def test_a_majority_of_the_keys_is_needed_and_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "head.pub").write_text(LINES[0] + "\n")
    log = WitnessedLogSettings(keys=("head.pub", *LINES[1:]))
    (found,) = witnessed_logs(settings(logs=(log,)), tmp_path / "witness.toml")
    assert (found.origin, found.needed, len(found.keys)) == ("logberg/c", 2, 3)


def test_a_later_life_of_a_cluster_has_its_own_origin(tmp_path: Path) -> None:
    log = WitnessedLogSettings(keys=LINES, generation=2, signatures=3)
    (found,) = witnessed_logs(settings(logs=(log,)), tmp_path / "witness.toml")
    assert (found.origin, found.needed) == ("logberg/c/2", 3)
    assert {key.name for key in found.keys} == {"logberg/c/2"}


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (WitnessedLogSettings(keys=(LINES[0], LINES[0])), "differ"),
        (WitnessedLogSettings(keys=("nowhere.pub",)), "can't be read"),
        (WitnessedLogSettings(keys=("a+b+c",)), "key"),
        (
            WitnessedLogSettings(keys=(LINES[0], SigningKey("logberg/d", bytes(32)).public.text)),
            "logberg/d",
        ),
    ],
)
def test_keys_that_are_not_of_one_log_are_refused(
    tmp_path: Path, log: WitnessedLogSettings, says: str
) -> None:
    with pytest.raises(SettingsError, match=says):
        witnessed_logs(settings(logs=(log,)), tmp_path / "witness.toml")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"name": "a b"}, "name is"),
        ({"name": ""}, "name is"),
        ({"listen": "nowhere"}, "listen"),
        ({"logs": ()}, "logs is empty"),
        ({"logs": (WitnessedLogSettings(keys=()),)}, "keys is empty"),
        ({"logs": (WitnessedLogSettings(keys=LINES, signatures=4),)}, "signatures is 4"),
        ({"logs": (WitnessedLogSettings(keys=LINES, generation=0),)}, "generation"),
        ({"log_level": "loud"}, "log_level"),
    ],
)
def test_what_is_wrong_is_named(more: dict, says: str) -> None:
    assert check_witness(settings()) == []
    (problem,) = check_witness(settings(**more))
    assert says in problem


def test_the_first_start_draws_the_key_and_later_ones_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "witness"
    disk = RealDisk(folder)
    key, _ = open_folder("w", disk)
    disk.close()
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert NoteKey.parse((folder / PUBLIC_FILE).read_text()) == key.public
    assert key.public.kind == COSIGNATURE
    again = RealDisk(folder)
    assert open_folder("w", again)[0].public == key.public
    again.close()
    (folder / STATE).unlink()
    last = RealDisk(folder)
    with pytest.raises(SettingsError, match="Retire its key"):
        open_folder("w", last)
