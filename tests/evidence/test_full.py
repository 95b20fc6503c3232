"""A full run continues behind what is recorded, and leaves out nothing."""

import itertools
import subprocess
from pathlib import Path

import pytest

from tests.evidence import full
from tests.evidence.full import Profile, next_chunk, profiles
from tests.evidence.kinds import KINDS
from tests.evidence.pieces import read_pieces, save
from tests.evidence.samples import COMMIT, everything, piece, seeds


def test_the_kind_with_the_fewest_seeds_goes_on_behind_what_is_recorded() -> None:
    among = [Profile("cluster", "drawn"), Profile("quorum", "drawn")]
    quorum = piece("seeds", {**seeds(1, 10).figures, "simulator": "quorum"})
    assert next_chunk(among, []) == (among[0], 1)
    assert next_chunk(among, [seeds(1, 20), quorum]) == (among[1], 11)
    assert next_chunk(among, [seeds(1, 5), quorum]) == (among[0], 6)
    assert next_chunk(among, [seeds(101, 5), quorum]) == (among[0], 106)


def test_kinds_do_not_overlap() -> None:
    found = profiles()
    assert len(found) == len(set(found))
    assert {"cluster", "quorum"} == {profile.simulator for profile in found}
    by_number = piece("seeds", {**seeds(1).figures, "kind": "by number"})
    assert [profile for profile in found if profile.counts(by_number)] == [Profile("cluster", "")]
    for one, other in itertools.combinations(found, 2):
        assert not (one.counts(seeds(1)) and other.counts(seeds(1)))


def test_a_command_is_told_how_many_processes() -> None:
    assert KINDS["crash points"].runs[0].filled(4) == ["--jobs", "4"]
    assert KINDS["mutants"].runs[0].filled(4) == ["--jobs", "2"]
    assert KINDS["mutants"].runs[0].filled(1) == ["--jobs", "1"]


def test_nothing_is_recorded_of_a_dirty_tree_or_beside_another_commit() -> None:
    assert "commit them first" in full.refusal(f"{COMMIT}+dirty", [])
    assert "records of 0123456789ab" in full.refusal("f" * 40, [seeds(1)])
    assert full.refusal(COMMIT, [seeds(1)]) == ""


def test_what_is_recorded_is_not_run_again_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command[2:])
        return subprocess.CompletedProcess(command, 1 if "tests.flips" in command else 0)

    monkeypatch.setattr(subprocess, "run", run)
    for one in everything():
        if one.what in ("kills", "model", "crash points"):
            module = "tests.crashpoints" if one.what == "crash points" else f"tests.{one.what}"
            save(tmp_path, one._replace(command=f"python -m {module} --jobs 2"))
    whole = full.Full(tmp_path, 3, ["/else/python"])
    whole.rest()
    assert [command[0] for command in ran] == [
        *("tests.simulation.calm", "tests.crashpoints.processes", "tests.power", "tests.flips"),
        *("tests.voter_runs", "tests.mutants", "tests.simulation.replays"),
    ]
    assert "--python=/else/python" in ran[-1]
    assert all(command[-2:] == ["--record", str(tmp_path)] for command in ran)
    assert whole.failed == ["python -m tests.flips --count 1050000"]


def test_seeds_stop_when_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1)
    )
    with pytest.raises(SystemExit, match="nothing was recorded"):
        full.Full(tmp_path, 1).seeds(1.0)


def test_seeds_take_turns_until_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    ran = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        given = dict(itertools.pairwise(command))
        figures = {**seeds(int(given["--first"]), int(given["--count"])).figures}
        figures |= {"simulator": given["--simulator"], "kind": given.get("--kind", "by number")}
        save(tmp_path, piece("seeds", figures))
        ran.append((figures["simulator"], figures["kind"], figures["first"]))
        now[0] += 30.0
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(full.time, "monotonic", lambda: now[0])
    kinds = profiles()
    full.Full(tmp_path, 1).seeds(minutes=len(kinds))
    assert len(ran) == 2 * len(kinds)
    assert len({(simulator, kind) for simulator, kind, _ in ran}) == len(kinds)
    assert {first for *_, first in ran} == {1, 1 + full.CHUNK}
    assert len(read_pieces(tmp_path)) == len(kinds) * 2
