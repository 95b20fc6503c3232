"""The units: systemd accepts them, their hardening is strict, and they fit what the programs do."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest

from logberg.cli.command_tree import cli
from logberg.processes.settings.broker_settings import BrokerSettings
from tests.debian import NotInstalledError, install
from tests.docs import source

FOLDER = source.ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PROGRAM = "/usr/local/bin/logberg"
EXPOSURE_MAX = 15
"""Tenths of systemd's own points; 100 is a unit without any protection."""


def read(unit: Path) -> dict[str, dict[str, list[str]]]:
    """Sections, keys and values; a key may come several times."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section.setdefault(key, []).append(value)
    return found


def analyzed(tmp_path: Path, unit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Let systemd read a copy whose program is this machine's."""
    try:
        install("systemd", is_there=lambda: shutil.which("systemd-analyze") is not None)
    except NotInstalledError as error:
        pytest.skip(str(error))
    program = Path(sys.executable).with_name("logberg")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(PROGRAM, str(program)))
    return subprocess.run(
        ["systemd-analyze", *arguments, str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_there_is_a_unit_for_a_controller_an_agent_and_a_witness() -> None:
    assert [unit.stem for unit in UNITS] == [
        "logberg-broker",
        "logberg-controller",
        "logberg-witness",
    ]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_verifies_a_unit_without_a_word(unit: Path, tmp_path: Path) -> None:
    done = analyzed(tmp_path, unit, "verify", "--man=no")
    said = [line for line in (done.stdout + done.stderr).splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done


def test_a_key_that_systemd_does_not_know_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "in" / UNITS[0].name
    wrong.parent.mkdir()
    wrong.write_text(UNITS[0].read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    done = analyzed(tmp_path, wrong, "verify", "--man=no")
    assert "NoNewPrivilege" in done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_counts_little_exposure(unit: Path, tmp_path: Path) -> None:
    done = analyzed(
        tmp_path, unit, "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager"
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_a_command_that_there_is(unit: Path) -> None:
    (line,) = read(unit)["Service"]["ExecStart"]
    program, name, option, _ = line.split()
    assert program == PROGRAM
    assert isinstance(cli, click.Group)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert option in [opt for parameter in command.params for opt in parameter.opts]


def test_a_unit_reports_and_is_watched() -> None:
    for unit in UNITS:
        service = read(unit)["Service"]
        assert service["Type"] == ["notify"]
        assert service["NotifyAccess"] == ["main"]
        assert 5 <= int(service["WatchdogSec"][0]) <= 60
        assert service["Restart"] == ["on-failure"]
        assert service["ExecReload"] == ["/bin/kill -HUP $MAINPID"]


def test_an_agent_may_take_as_long_as_its_controlled_shutdown() -> None:
    limit_ms = next(
        field.default
        for field in msgspec.structs.fields(BrokerSettings)
        if field.name == "stop_limit_ms"
    )
    (stop_s,) = read(FOLDER / "logberg-broker.service")["Service"]["TimeoutStopSec"]
    assert int(stop_s) * 1000 > limit_ms


def test_all_units_are_protected_alike() -> None:
    own = {"ExecStart", "RuntimeDirectory", "TimeoutStopSec"}
    one, *others = (read(unit)["Service"] for unit in UNITS)
    for other in others:
        assert {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)} <= own


def test_the_user_that_the_units_name_is_made() -> None:
    kinds = [line.split()[:2] for line in (FOLDER / "logberg.sysusers").read_text().splitlines()]
    (user,) = [name for kind, name in kinds if kind == "u"]
    for unit in UNITS:
        assert read(unit)["Service"]["User"] == [user]


def test_the_reader_of_this_test_reads_as_others_do() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(UNITS[0])
    for key, values in read(UNITS[0])["Service"].items():
        assert parser["Service"][key] == values[-1]
