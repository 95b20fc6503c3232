"""The old names of release 0.1: environment variables, and the folder of `up`."""

import json
import os
from pathlib import Path

import pytest

from logberg.cli.old_variables import VARIABLES, take_old_variables
from logberg.local.cluster_file import LocalClusterError
from tests.unit.logberg.cli.test_comfort import CONNECTION
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener

NOWHERE = "http://127.0.0.1:1"
LIST = ("topics", "list", "--timeout", "0.2")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        # Set first: then what the command sets is taken back at the end.
        for prefix in ("LOGBERG_", "QUORATE_"):
            monkeypatch.setenv(prefix + name, "")
            monkeypatch.delenv(prefix + name)


def cluster_file(folder: Path) -> None:
    folder.mkdir()
    node = {"role": "controller", "id": 1, "pid": None, "url": NOWHERE, "quorum": None}
    said = {
        "clusterId": "c",
        "controllers": 1,
        "brokers": 0,
        "portBase": 19000,
        "ca": "ca.crt",
        "tokenFile": str(folder / "admin.token"),
        "nodes": [{**node, "folder": str(folder)}],
    }
    (folder / "cluster.json").write_text(json.dumps(said))


def test_every_option_of_a_connection_has_its_old_variable() -> None:
    assert {f"LOGBERG_{name}" for name in VARIABLES} == set(CONNECTION.values())


def test_an_old_variable_counts_where_the_new_one_is_not_set() -> None:
    environment = {
        "QUORATE_CA": "old",
        "QUORATE_KEY": "old",
        "LOGBERG_KEY": "new",
        "QUORATE_X": "x",
    }
    assert take_old_variables(environment) == ["QUORATE_CA"]
    assert (environment["LOGBERG_CA"], environment["LOGBERG_KEY"]) == ("old", "new")
    assert take_old_variables(environment) == [], "said once, not by each process"
    assert "LOGBERG_X" not in environment


def test_an_old_variable_is_noted_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_CONTROLLERS", NOWHERE)
    said = run_whole(*LIST)
    assert NOWHERE in said.err
    assert (
        "note: QUORATE_CONTROLLERS is the old name of LOGBERG_CONTROLLERS, and release 0.3 will "
        "not read it: set LOGBERG_CONTROLLERS"
    ) in said.err


def test_programs_get_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_CONTROLLERS", NOWHERE)
    monkeypatch.setenv("QUORATE_OUTPUT", "json")
    assert NOWHERE in json.loads(run_whole(*LIST).err)["message"]


def test_a_new_variable_goes_before_its_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Listener()
    try:
        monkeypatch.setenv("QUORATE_CONTROLLERS", NOWHERE)
        monkeypatch.setenv("LOGBERG_CONTROLLERS", controller.url)
        said = run_whole("brokers", "list")
        assert (said.code, said.err) == (0, "")
    finally:
        controller.close()
    assert os.environ["LOGBERG_CONTROLLERS"] == controller.url


def test_the_old_folder_is_used_and_named_while_there_is_no_new_one(tmp_path: Path) -> None:
    cluster_file(tmp_path / "quorate-data")
    note = (
        "note: ./quorate-data is used, the default folder of release 0.1, because there is no "
        "./logberg-data\n"
    )
    for command in (LIST, ("log", "dump"), ("log", "verify")):
        said = run_whole(*command)
        assert said.code == 1
        assert said.err.startswith(note)
        assert "quorate-data" in said.err.removeprefix(note)
    assert "quorate-data" in json.loads(run_whole(*LIST, "-o", "json").err)["message"]
    # Who names a folder gets that one.
    assert "quorate" not in run_whole(*LIST, "--data", "logberg-data").err
    cluster_file(tmp_path / "logberg-data")
    assert "quorate" not in run_whole(*LIST).err


def test_up_goes_on_in_the_old_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, *_: object, **__: object) -> None:
        raise LocalClusterError(f"asked for {folder}")

    monkeypatch.setattr("logberg.commands.up.LocalCluster", refuse)
    assert "asked for logberg-data" in run_whole("up").err
    Path("quorate-data").mkdir()
    said = run_whole("up")
    assert "asked for quorate-data" in said.err
    assert "./quorate-data is used" in said.err
    assert not Path("logberg-data").exists()
