"""The page shows what the pieces say, nothing else, and what is bad or missing loudly."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.evidence import coverage_table
from tests.evidence.coverage_table import BY_NATURE, EMPTY, faults
from tests.evidence.not_promised import NOT_PROMISED
from tests.evidence.page import page
from tests.evidence.pieces import FIGURES, PieceError
from tests.evidence.promises import NOT_MADE, PROMISES
from tests.evidence.samples import everything, piece, seeds
from tests.evidence.what_was_run import SECTIONS
from tests.simulation.coverage import CLUSTER_OPERATIONS

ROOT = Path(__file__).parents[2]


def test_without_pieces_every_kind_says_that_it_was_not_run() -> None:
    made = page([])
    for title, _ in SECTIONS.values():
        section = made.partition(f"### {title}\n")[2].partition("###")[0]
        assert "not run yet" in section, title
    assert set(SECTIONS) == set(FIGURES)
    top = made.partition("## What is not promised")[0]
    figures = [row.split("|")[2].strip() for row in top.splitlines() if row.startswith("| ")]
    assert set(figures) == {"figure", "not run yet"}


def test_with_all_pieces_nothing_is_missing_and_nothing_is_loud() -> None:
    made = page(everything())
    assert "not run yet" not in made
    top, _, below = made.partition("## What is not promised")
    assert " !**" not in below
    # The samples are few, and the summary says that they are too few.
    too_few = re.findall(r"\*\*[\d,]+ !\*\* \| ([\d,]+ or more)", top)
    assert top.count(" !**") == len(too_few) == 4


def test_goals_that_are_reached_are_not_loud() -> None:
    def loud(what: str, figures: dict[str, Any]) -> bool:
        sample = next(one for one in everything() if one.what == what)
        made = page([sample._replace(figures={**sample.figures, **figures})])
        return " !**" in made.partition("## What is not promised")[0]

    assert loud("seeds", {"count": 49_999})
    assert not loud("seeds", {"count": 50_000})
    assert loud("flips", {"flips": 999_999})
    assert not loud("flips", {"flips": 1_000_000})
    assert not loud("kills", {"kills": 500, "samples_ms": [999.9]})
    assert loud("kills", {"kills": 500, "samples_ms": [1_000.0]})
    assert loud("kills", {"kills": 499})


def test_sums_stand_at_the_top_and_below() -> None:
    made = page(everything())
    top = made.partition("## What is not promised")[0]
    assert "| seeds of simulated clusters | **2,000 !** | 50,000 or more |" in top
    assert "| simulated time | 20.0 h |" in top
    assert "| answers checked | 120,000 |" in top
    assert "| kill to the next commit, p99 | 220 ms |" in top
    assert "1 to 2,000" in made
    assert "| changes acknowledged meanwhile | 900 |" in top


def test_what_is_not_promised_stands_before_any_promise() -> None:
    made = page(everything())
    assert made.index(NOT_PROMISED[0].limits[0].title) < made.index(f"### {PROMISES[0].number}. ")


@pytest.mark.parametrize(
    ("what", "figure", "loud"),
    [
        ("crash points", "violations", "**3 !**"),
        ("power cuts", "violations", "**3 !**"),
        ("flips", "silent", "**3 silent !**"),
        ("kills", "missing", "**3 !**"),
        ("kills", "doubled", "**3 !**"),
        ("kills", "fenced", "**3 !**"),
        ("replays", "different", "**3 !**"),
    ],
)
def test_what_must_not_be_is_loud(what: str, figure: str, loud: str) -> None:
    pieces = [
        one._replace(figures={**one.figures, figure: 3}) if one.what == what else one
        for one in everything()
    ]
    made = page(pieces)
    top, _, below = made.partition("## What is not promised")
    assert "**3 !**" in top
    assert loud in below


def test_logs_that_are_unsound_after_kills_are_loud() -> None:
    kills = next(one for one in everything() if one.what == "kills")
    made = page([kills._replace(figures={**kills.figures, "unsound": ["verify: they differ"]})])
    assert "**verify: they differ !**" in made
    assert "| logs unsound after it | **1 !** | 0 |" in made


def test_violations_and_survivors_are_loud_and_named() -> None:
    made = page([seeds(1, violations=1, failed=["make seed SEED=7: I5: lost"])])
    assert "| violations in them | **1 !** |" in made
    assert "make seed SEED=7: I5: lost" in made
    made = page([piece("mutants", {"mutants": [], "survivors": ["no fsync"]})])
    assert "**1 survived: no fsync**" in made
    assert "| mutants that survived | **1 !** | 0 |" in made


def test_a_hole_of_the_coverage_is_loud() -> None:
    full = seeds(1).figures["coverage"]
    assert EMPTY not in page([seeds(1)])
    holed = {**full, "kill": {**full["kill"], "jump": 0}}
    made = page([seeds(1, coverage=holed)])
    assert made.count(EMPTY) == 1
    assert "**1 cells are empty.**" in made
    assert "| empty cells of fault by operation | **1 !** |" in made


def test_a_fault_that_never_struck_is_a_row_of_holes() -> None:
    full = seeds(1).figures["coverage"]
    never = {fault: met for fault, met in full.items() if fault != "kill"}
    assert page([seeds(1, coverage=never)]).count(EMPTY) == len(CLUSTER_OPERATIONS)


def test_what_cannot_meet_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_table, "IMPOSSIBLE", {("kill", "jump"): "nobody jumps so"})
    full = seeds(1).figures["coverage"]
    made = page([seeds(1, coverage={**full, "kill": {**full["kill"], "jump": 0}})])
    assert EMPTY not in made
    assert f" {BY_NATURE} |" in made
    assert "- kill, jump: nobody jumps so" in made


def test_a_dirty_piece_is_refused_unless_it_is_asked_for() -> None:
    dirty = [seeds(1)._replace(commit="0" * 40 + "+dirty")]
    with pytest.raises(PieceError, match="changes that no commit holds"):
        page(dirty)
    assert "`000000000000+dirty`" in page(dirty, allow_dirty=True)


def test_mutants_are_counted_with_the_promise_that_they_break() -> None:
    made = page(everything())
    said = dict(re.findall(r"### (\d+)\. (?:.*\n)*?Mutants that break it: ([^.]+)\.", made))
    assert said["1"] == "1 killed"
    assert said["12"] == "1 killed"
    # I13 and F-11 are no promises' numbers.
    assert said["11"] == "none"


def test_a_bar_in_what_was_said_breaks_no_table() -> None:
    made = page(everything())
    row = next(line for line in made.splitlines() if line.startswith("| no fsync |"))
    assert row.count("|") - row.count("\\|") == 5


def test_every_place_that_a_promise_names_is_there() -> None:
    named = [place.path for one in PROMISES for place in (*one.rule, *one.proof)]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_promise_has_its_number_its_rule_and_its_proof() -> None:
    numbers = [one.number for one in PROMISES]
    assert numbers == sorted(set(numbers))
    assert sorted([*numbers, *NOT_MADE]) == list(range(1, 17))
    for one in PROMISES:
        assert one.rule
        assert any(place.path.startswith("tests/") for place in one.proof), one.title


def test_faults_are_those_of_the_simulation() -> None:
    assert {"kill", "power", "old_frames", "rot"} <= set(faults({}))
    assert len(faults({})) == len(set(faults({})))
