"""The judges of answers don't change a run. `tests/mutants` has the broken controllers."""

import pytest

from tests.checkers import registers, revisions
from tests.checkers.history import Operation, from_lines
from tests.mutants.seed_searches import judges_alone
from tests.mutants.table import broken
from tests.simulation.answers import Answers, Judgement
from tests.simulation.seeds import run_seed

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_a_sound_controller_is_not(seed):
    with judges_alone() as found:
        outcome = run_seed(seed, kind="rivals")
    assert found == []
    assert outcome.facts["judged stale"] > 20
    assert outcome.facts["judged at_least"] > 10
    assert outcome.facts["states equal to the reference"] > 5
    assert outcome.facts["checkpoints equal to the reference"] >= 3


def test_to_be_judged_changes_nothing(monkeypatch):
    judged = run_seed(2, faults_s=4.0).digest
    monkeypatch.setattr(Answers, "asked", lambda *_args, **_named: Operation("", 0, 0))
    for method in ("changed", "refused", "read"):
        monkeypatch.setattr(Answers, method, lambda *_args: None)
    monkeypatch.setattr(Judgement, "judge", lambda self: self.facts)
    assert run_seed(2, faults_s=4.0).digest == judged


def test_a_history_from_a_file_is_judged_like_the_run(tmp_path):
    file = tmp_path / "history.jsonl"
    assert not run_seed(4, kind="rivals", history=file).failure
    operations, log = from_lines(file.read_text().splitlines())
    assert len(operations) > 100
    assert revisions.violations(operations, log) == []
    del log.effects[len(log.effects) // 2 :]
    assert revisions.violations(operations, log)


def test_the_search_sees_a_stale_read_without_any_offset(tmp_path):
    file = tmp_path / "history.jsonl"
    with broken("stale read"), judges_alone():
        run_seed(1, kind="rivals", history=file)
    operations, _ = from_lines(file.read_text().splitlines())
    names = {operation.topic for operation in operations if operation.topic}
    verdicts = {registers.search(registers.steps_of(operations, name)) for name in names}
    assert registers.Verdict.ILLEGAL in verdicts


def test_the_history_of_a_run_that_failed_early_has_what_was_asked(tmp_path):
    file = tmp_path / "history.jsonl"
    with broken("answer names another offset"):
        outcome = run_seed(1, history=file)
    assert outcome.failure
    operations, _ = from_lines(file.read_text().splitlines())
    assert operations
