"""`logberg quorum recover`: what it says, what it refuses, and that it changes nothing unasked."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from logberg.cli.command_tree import cli
from runtime.disk.real import RealDisk
from tests.unit.audit.nodes import InlineDisk
from tests.unit.logberg.recovery.folders import Made, damage_journal, history, write

LOG = history((1, 3), (2, 4))
END = LOG[-1].header.end_offset
YES = ("--yes", "--reason", "two disks burnt", "--by", "olga")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three controllers' folders, of which the third holds the most."""
    for n in (1, 2, 3):
        disk = InlineDisk(tmp_path / f"controller-{n}")
        write(disk, Made(n, LOG[: 4 + n], 4))
        disk.close()
    return tmp_path


def recover(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["quorum", "recover", *map(str, arguments)])


def files(folder: Path) -> dict[Path, bytes]:
    found = (p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")
    return {path: path.read_bytes() for path in found}


BAD = [
    (("--yes",), 2, "--yes needs --reason"),
    (("--voter", "x"), 2, "is no voter"),
    (("--voter", "2="), 2, "is no voter"),
    (("--voter", "2@host:99999=new"), 2, "ports end at 65535"),
    (("--voter", "3"), 1, "node 1 has the most complete folder, so it must be a voter"),
    (("--voter", "1", "--voter", "2"), 1, "voter 2 needs a folder"),
    (("--voter", "1", "--voter", "2=."), 1, "is not empty"),
    (("--voter", "1", "--voter", "9=new"), 1, "no address for controller 9"),
]


@pytest.mark.parametrize(("arguments", "code", "sentence"), BAD)
def test_bad_requests_are_a_sentence_and_change_nothing(
    folder: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    before = files(folder)
    said = recover(folder / "controller-1", *arguments)
    assert (said.exit_code, sentence in said.output) == (code, True), said.output
    assert files(folder) == before


def test_what_is_no_folder_of_a_controller(folder: Path) -> None:
    missing = recover(folder / "nowhere")
    assert (missing.exit_code, "is not there" in missing.output) == (1, True)
    (folder / "empty" / "journal").mkdir(parents=True)
    empty = recover(folder / "empty")
    assert (empty.exit_code, "holds no journal" in empty.output) == (1, True)


def test_a_folder_in_use_is_refused(folder: Path) -> None:
    holder = RealDisk(folder / "controller-2")
    holder.lock()
    try:
        said = recover(folder / "controller-1", folder / "controller-2", *YES)
    finally:
        holder.close()
    assert said.exit_code == 1
    assert "is in use by another process" in said.output


def test_a_sound_majority_is_told_to_start_and_needs_force(folder: Path) -> None:
    before = files(folder)
    said = recover(folder, *YES)
    assert said.exit_code == 1
    assert "start these controllers, and nothing is lost" in said.output
    assert files(folder) == before
    assert recover(folder, *YES, "--force").exit_code == 0


def test_it_shows_all_and_changes_nothing_without_yes(folder: Path) -> None:
    before = files(folder)
    damage_journal(folder / "controller-2")
    damaged = files(folder)
    said = recover(folder / "controller-2", folder / "controller-3")
    assert said.exit_code == 0, said.output
    assert f"DAMAGED: {folder}/controller-2: " in said.output
    assert f"most complete: {folder}/controller-3: its log ends at offset" in said.output
    assert "certain: offsets 0 to 9: they were committed" in said.output
    assert "probable: offsets 10 to" in said.output
    assert "these voters are not here: 1" in said.output
    assert "nothing was changed" in said.output
    assert files(folder) == damaged != before


def test_yes_begins_the_generation_and_a_program_can_read_it(folder: Path) -> None:
    new = folder / "carried"
    said = recover(
        folder / "controller-3", *YES, "--voter=3", f"--voter=1={new}", "--output", "json"
    )
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert (told["generation"], told["voters"], told["begun"]) == (2, [1, 3], True)
    assert told["absentVoters"] == [1, 2]
    assert told["probableEnd"] == told["firstOffset"] == LOG[6].header.end_offset
    assert (folder / "controller-3" / "before-generation-2" / "journal").is_dir()
    for each in (folder / "controller-3", new):
        again = json.loads(recover(each, "--output", "json").stdout)
        assert again["folders"][0]["generation"] == 2
        assert again["generation"] == 3
    # The folders of before are of an earlier generation now.
    mixed = recover(folder / "controller-1", folder / "controller-3")
    assert "it is of generation 1, an earlier one" in mixed.output


def test_files_that_the_node_could_not_read_are_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, us = files(folder), os.geteuid()
    monkeypatch.setattr("logberg.commands.recover.os.geteuid", lambda: us + 1)
    said = recover(folder / "controller-3", *YES)
    assert said.exit_code == 1
    assert f"belongs to user {us}, and you are user {us + 1}" in said.output
    assert files(folder) == before


def test_what_is_certain_is_no_more_than_is_known(tmp_path: Path) -> None:
    disk = InlineDisk(tmp_path / "controller-1")
    write(disk, Made(1, LOG, in_ledger=0))
    disk.close()
    said = recover(tmp_path / "controller-1")
    assert said.exit_code == 0, said.output
    assert "certain: nothing: no folder knows of a committed record" in said.output
    assert f"probable: offsets 0 to {END - 1}" in said.output


def test_a_majority_of_copies_is_no_proof(folder: Path) -> None:
    said = recover(folder)
    assert "nothing is lost: a majority" in said.output
    assert "If all are older copies" in said.output


def test_log_verify_says_the_same_of_a_damaged_journal(folder: Path) -> None:
    one = folder / "controller-1"
    sound = CliRunner().invoke(cli, ["log", "verify", str(one)])
    assert sound.exit_code == 0, sound.output
    assert "sound; node 1, generation 1, epoch 2" in sound.output
    damage_journal(one)
    damaged = CliRunner().invoke(cli, ["log", "verify", str(one)])
    assert damaged.exit_code == 1
    assert "is damaged at byte" in damaged.output
    told = json.loads(recover(one, "--output", "json").stdout)
    assert told["folders"][0]["damage"] in damaged.output
