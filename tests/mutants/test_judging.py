"""How mutants are judged, and how their killers are recorded and found again."""

import pytest

from tests.evidence.kinds import KINDS
from tests.mutants import kept
from tests.mutants.__main__ import figures, keep
from tests.mutants.judging import Judged, gist, killed
from tests.mutants.mutant import DirectedTest, Seed, SeedSearch
from tests.mutants.table import MUTANTS

HISTORY = Seed(SeedSearch("reference"), 1, "I13: the reference has another state")


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("I5: an acknowledged entry 214 is not the leader's", "I5: an acknowledged entry"),
        ("I5/I9: create topic-1 is in the log 2 times", "I5/I9: create topic-"),
        ("a node stopped itself: [(2, 'why')]", "a node stopped itself:"),
        ("DamagedLedgerError('log/00000000000000000301.log')", "DamagedLedgerError"),
    ],
)
def test_the_first_words_are_those_that_do_not_differ_from_run_to_run(says, words):
    assert gist(says) == words


def test_a_seed_that_says_something_else_does_not_kill():
    mutant = MUTANTS["partition epoch stands still"]
    assert killed(mutant, HISTORY)
    assert not killed(mutant, HISTORY._replace(says="I5: an acknowledged entry"))


def test_what_is_kept_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FILE", tmp_path / "kept.json")
    some: dict[str, list[Seed | DirectedTest]] = {
        "one": [
            Seed(SeedSearch("quorum", "wire", 5), 3, "I5: lost", 4.0),
            DirectedTest("tests/x.py::test_y"),
        ],
        "other": [HISTORY],
    }
    kept.write_killers(some)
    assert kept.read_killers() == some


def test_new_seeds_come_before_old_ones_and_tests_stay():
    old, older = (HISTORY._replace(number=number) for number in (2, 3))
    test = DirectedTest("tests/x.py::test", "")
    judged = Judged("partition epoch stands still", "3", HISTORY, "I13", 0.1)
    assert keep(judged, [old, older, test]) == [HISTORY, old, test]
    assert keep(judged._replace(killer=test), [old, test]) == [old, test]
    assert keep(judged._replace(killer=None), [old, test]) == [old, test]


def test_figures_are_those_that_evidence_asks_for():
    dead = Judged("one", "1", HISTORY, "I13: another state", 0.1)
    alive = Judged("other", "2", None, "SURVIVED", 9.0)
    found = figures([dead, alive])
    assert set(KINDS["mutants"].needed) <= set(found)
    assert found["survivors"] == ["other"]
    assert [one["killed_by"] for one in found["mutants"]] == ["seed 1 (reference)"]
