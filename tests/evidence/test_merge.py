"""Folding pieces changes no sum, and a full run goes on behind what is recorded."""

import itertools
import subprocess
from pathlib import Path

import pytest

from tests.evidence import full
from tests.evidence.commands import COMMANDS
from tests.evidence.full import Profile, next_chunk, profiles, there
from tests.evidence.merge import merge
from tests.evidence.pieces import FIGURES, Piece, read_pieces, save, seed_range, summed
from tests.evidence.samples import COMMIT, everything, piece, seeds


def sums(pieces: list[Piece]) -> dict[str, object]:
    found = summed(pieces, "seeds")
    return {key: found[key] for key in found if key not in ("pieces", "ranges")}


def saved(folder: Path, *pieces: Piece) -> None:
    for one in pieces:
        save(folder, one)


def test_what_follows_each_other_becomes_one_and_sums_stay(tmp_path: Path) -> None:
    saved(tmp_path, *(seeds(first, 100, failed=[f"seed {first}"]) for first in (1, 201, 101)))
    before = sums(read_pieces(tmp_path))
    assert merge(tmp_path) == 2
    (whole,) = read_pieces(tmp_path)
    assert sums([whole]) | {"failed": []} == before | {"failed": []}
    assert sorted(whole.figures["failed"]) == ["seed 1", "seed 101", "seed 201"]
    assert whole.figures["kind"] == "drawn"
    assert (seed_range(whole).first, seed_range(whole).end) == (1, 301)
    assert whole.command.endswith("--first 1 --count 300")
    assert whole.took_s == 270
    assert [path.name for path in tmp_path.iterdir()] == ["seeds-cluster-drawn-0123456-1.json"]
    assert merge(tmp_path) == 0


def test_a_hole_another_kind_and_another_commit_stay_apart(tmp_path: Path) -> None:
    other = "f" * 40
    saved(
        tmp_path,
        seeds(1, 100),
        seeds(102, 100),
        seeds(202, 100, kind="full"),
        seeds(202, 100)._replace(commit=other),
        seeds(302, 100)._replace(python="3.13.0"),
    )
    assert merge(tmp_path) == 0
    assert len(read_pieces(tmp_path)) == 5


def test_kills_are_folded_with_their_samples(tmp_path: Path) -> None:
    kills = next(one for one in everything() if one.what == "kills")
    slow = kills._replace(figures={**kills.figures, "samples_ms": [900.0]})
    saved(tmp_path, kills, slow)
    assert merge(tmp_path) == 1
    (whole,) = read_pieces(tmp_path)
    assert sorted(whole.figures["samples_ms"]) == [40.0, 60.0, 220.0, 900.0]
    assert whole.figures["next_commit_ms"]["max"] == 900.0
    assert whole.figures["acknowledged"] == 1800


def test_others_stay_as_they_are(tmp_path: Path) -> None:
    saved(tmp_path, *everything())
    before = {what: summed(read_pieces(tmp_path), what) for what in ("flips", "model", "mutants")}
    assert merge(tmp_path) == 1
    assert {w: summed(read_pieces(tmp_path), w) for w in before} == before


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
    by_number = piece("seeds", {**seeds(1).figures, "kind": "by number"}, COMMIT)
    counting = [profile for profile in found if profile.counts(by_number)]
    assert counting == [Profile("cluster", "")]
    for one, other in itertools.combinations(found, 2):
        assert not (one.counts(seeds(1)) and other.counts(seeds(1)))


def test_a_module_that_is_not_there_is_known() -> None:
    assert there("tests.kills")
    assert not there("tests.no_such_thing")
    assert not there("no_such_package.thing")


def test_a_command_of_the_full_run_is_told_how_many_processes() -> None:
    assert COMMANDS["crash points"].runs[0].filled(4) == ["--jobs", "4"]
    assert COMMANDS["mutants"].runs[0].filled(4) == ["--jobs", "2"]
    assert COMMANDS["mutants"].runs[0].filled(1) == ["--jobs", "1"]
    assert set(COMMANDS) == set(FIGURES)


def test_what_is_recorded_is_not_run_again_and_what_is_not_there_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command[2:])
        return subprocess.CompletedProcess(command, 1 if "tests.flips" in command else 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(full, "there", lambda module: module != "tests.power")
    saved(tmp_path, *(one for one in everything() if one.what in ("kills", "model")))
    points = next(one for one in everything() if one.what == "crash points")
    saved(tmp_path, points._replace(command="python -m tests.crashpoints --jobs 2"))
    whole = full.Full(tmp_path, 3, ["/else/python"])
    whole.rest()
    modules = [command[0] for command in ran]
    assert modules == [
        *("tests.crashpoints.processes", "tests.flips"),
        *("tests.mutants", "tests.simulation.replays"),
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
    kinds = full.profiles()
    full.Full(tmp_path, 1).seeds(minutes=len(kinds))
    assert len(ran) == 2 * len(kinds)
    assert len({(simulator, kind) for simulator, kind, _ in ran}) == len(kinds)
    assert {first for *_, first in ran} == {1, 1 + full.CHUNK}
    assert len(read_pieces(tmp_path)) == len(kinds)
