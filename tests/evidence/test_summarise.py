"""Pieces of one commit become a table with their sums, and the page shows the table, no more."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.evidence import summarise
from tests.evidence.kinds import KINDS
from tests.evidence.page import promise_table, recorded_table
from tests.evidence.pieces import Piece, PieceError, save
from tests.evidence.recorded import RECORDED, Row, read_rows, write_rows
from tests.evidence.samples import everything, kills, mutants, piece, seeds
from tests.evidence.summarise import rows_of


def row(pieces: list[Piece], what: str) -> Row:
    (found,) = (one for one in rows_of(pieces) if one.what == what)
    return found


def line(pieces: list[Piece], what: str) -> str:
    made = recorded_table(rows_of(pieces))
    return next(found for found in made.splitlines() if found.startswith(f"| {KINDS[what].title} "))


# -- the recorded table ----------------------------------------------------------------------------


def test_what_is_recorded_is_of_one_commit_and_of_known_kinds() -> None:
    rows = read_rows()
    assert len({one.commit for one in rows}) == 1
    assert re.fullmatch("[0-9a-f]{12}", rows[0].commit)
    assert {one.what for one in rows} <= set(KINDS)
    assert all(one.command and one.date and one.python for one in rows)


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    rows = rows_of(everything())
    write_rows(rows, tmp_path / "r.csv")
    assert read_rows(tmp_path / "r.csv") == rows
    write_rows(read_rows(), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == RECORDED.read_text()


# -- folding ---------------------------------------------------------------------------------------


def test_seeds_that_follow_each_other_are_one_row_with_one_command() -> None:
    pieces = [seeds(first, 100, failed=[], violations=first // 100) for first in (1, 201, 101)]
    found = row(pieces, "seeds")
    assert (found.kind, found.count, found.wrong, found.seconds) == ("cluster drawn", 300, 3, 270)
    assert found.command == "python -m tests.seeds --first 1 --count 300"
    assert found.figures == {"simulated_s": 108_000, "faults": 1_560, "answers": 180_000}


def test_a_hole_another_kind_and_another_python_are_rows_of_their_own() -> None:
    other = seeds(302, 100)._replace(python="3.13.0")
    rows = rows_of([seeds(1, 100), seeds(102, 100), seeds(202, 100, kind="full"), other])
    firsts = sorted(one.command.split()[-3] for one in rows if one.what == "seeds")
    assert firsts == ["1", "102", "202", "302"]


def test_percentiles_are_of_all_samples_together() -> None:
    figures = row([kills([1.0] * 98), kills([5.0, 900.0])], "kills").figures
    assert (figures["p50_ms"], figures["p99_ms"], figures["max_ms"]) == (1, 5, 900)
    assert figures["paused_p99_ms"] == 800
    assert "second_kill_p99_ms" not in figures
    assert figures["acknowledged"] == 1800


def test_depths_and_times_of_several_rows_are_not_added_up() -> None:
    slow = kills([900.0])._replace(python="3.13.0")
    pieces = [kills([5.0]), slow, *(piece("model", _model(depth)) for depth in (30, 35))]
    assert "p99 900 ms" in line(pieces, "kills")
    assert "depth 35" in line(pieces, "model")


def _model(depth: int) -> dict[str, Any]:
    figures = next(one.figures for one in everything() if one.what == "model")
    return {**figures, "spec": f"Guard: {depth}", "depth": depth}


def test_mutants_count_for_the_promises_that_they_break() -> None:
    """I13 is an invariant, and no promise has its number."""
    assert row([mutants()], "mutants").figures == {"promise_1": 1, "promise_12": 2}
    made = promise_table(rows_of([mutants()]), "### 1. A title\n\n### 12. That's so\n")
    assert "| 12 | [That's so](#12-thats-so) | 2 |" in made


def test_pairs_that_never_met_are_named() -> None:
    full = seeds(1).figures["coverage"]
    assert row([seeds(1)], "coverage").wrong == 0
    found = row([seeds(1, coverage={**full, "kill": {**full["kill"], "read": 0}})], "coverage")
    assert (found.wrong, found.failed) == (1, "kill never met read")
    never = {fault: met for fault, met in full.items() if fault != "kill"}
    assert row([seeds(1, coverage=never)], "coverage").wrong == len(full["kill"])


def test_a_row_is_one_line_whatever_failed() -> None:
    many = [f"seed {n}:\n  I5: lost" for n in range(12)]
    failed = row([seeds(1, violations=12, failed=many)], "seeds").failed
    assert failed.startswith("seed 0: I5: lost; seed 1: I5: lost; ")
    assert failed.endswith("; and 3 more")
    assert "\n" not in failed


def test_pieces_of_two_commits_of_a_dirty_tree_and_none_are_refused() -> None:
    other = kills([1.0])._replace(commit="f" * 40)
    with pytest.raises(PieceError, match="pieces of 2 commits: 0123456789ab, ffffffffffff"):
        rows_of([seeds(1), other])
    with pytest.raises(PieceError, match="changes that no commit holds"):
        rows_of([kills([1.0])._replace(commit="0" * 40 + "+dirty")])
    with pytest.raises(PieceError, match="no piece"):
        rows_of([])


def test_the_command_folds_a_folder_and_writes_nothing_that_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, table = tmp_path / "safety.md", tmp_path / "recorded.csv"
    page.write_text("as it was")
    monkeypatch.setattr(summarise, "SAFETY", page)
    monkeypatch.setattr(summarise, "write_rows", lambda rows: write_rows(rows, table))
    monkeypatch.setattr("sys.argv", ["summarise", str(tmp_path / "runs")])
    for one in everything():
        save(tmp_path / "runs", one)
    assert summarise.main() == 0
    assert len(read_rows(table)) == len(KINDS)
    table.unlink()
    save(tmp_path / "runs", seeds(5000)._replace(commit="f" * 40))
    assert summarise.main() == 1
    assert not table.exists()


# -- the page --------------------------------------------------------------------------------------


def test_a_kind_that_was_not_run_says_so() -> None:
    made = recorded_table([])
    assert made.count("**not run**") == len(KINDS)
    assert "Nothing was run." in made
    assert promise_table([], "### 1. A title\n").endswith("| **not run** |\n")
    assert "not run" not in recorded_table(rows_of(everything()))


def test_sums_and_their_commit_stand_on_the_page() -> None:
    made = recorded_table(rows_of(everything()))
    assert "`0123456789ab`, 2026-01-02, on Python 3.11.7, 3.13.0, and took 16 min." in made
    assert (
        "| **2,000 seeds !** | 50,000 | 0 | simulated 20.0 h, faults 1,040, answers 120,000 |"
        in made
    )
    assert "p99 220 ms" in line(everything(), "kills")
    assert "1,100 seeds of 2 kinds" in line([seeds(1), seeds(1, 100, kind="full")], "seeds")


def test_too_few_and_too_slow_are_loud() -> None:
    assert "**49,999 seeds !**" in line([seeds(1, 49_999)], "seeds")
    assert "!" not in line([seeds(1, 50_000)], "seeds")
    assert "**p99 1,000 ms !**" in line([kills([1_000.0] * 500)], "kills")
    assert "!" not in line([kills([999.0] * 500)], "kills")


@pytest.mark.parametrize(
    ("what", "figures"),
    [
        ("seeds", {"violations": 3}),
        ("calm", {"elections": 1, "fenced": 1, "registrations": 1}),
        ("crash points", {"violations": 3}),
        ("power cuts", {"violations": 3}),
        ("flips", {"silent": 3}),
        ("kills", {"missing": 1, "doubled": 1, "fenced": 1}),
        ("kills", {"unsound": ["a", "b", "c"]}),
        ("mutants", {"survivors": ["a", "b", "c"]}),
        ("model", {"violated": ["OneLeader"], "mutants_not_rejected": ["a", "b"]}),
        ("replays", {"different": 3}),
    ],
)
def test_what_must_not_be_is_loud_and_named(what: str, figures: dict[str, Any]) -> None:
    one = next(one for one in everything() if one.what == what)
    wrong = [piece(what, {**one.figures, **figures})]
    assert "| **3 !** |" in line(wrong, what)
    made = recorded_table(rows_of(wrong))
    assert "What went wrong or is missing:" in made
    for name in figures:
        assert f"{name}: " in made


def test_what_failed_stands_in_the_words_of_the_run() -> None:
    said = "make seed SEED=7: I5: lost"
    made = recorded_table(rows_of([seeds(1, violations=1, failed=[said])]))
    assert f"seeds cluster drawn: {said}" in made
