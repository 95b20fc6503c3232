"""The product's replay and the reference's replay give the same states from the same histories.

To prove that the comparison can fail, `tests/mutants` has mutants of replay, and it must find each.
"""

from metadata.image import outcomes
from tests.histories import History
from tests.mutants.differing import differs, to_the_millisecond
from tests.reference import folding


def histories(batches):
    yield to_the_millisecond()
    for seed in range(20):
        yield History(seed).batches(batches)


def test_without_a_mistake_nothing_is_seen():
    assert not any(differs(batches) for batches in histories(40))


def test_what_is_too_many_is_too_many_for_both(monkeypatch):
    monkeypatch.setattr(outcomes, "KEPT_KEYS_MAX", 3)
    monkeypatch.setattr(folding, "MOST_OUTCOMES", 3)
    assert not any(differs(batches) for batches in histories(40))
    monkeypatch.setattr(outcomes, "KEPT_BYTES_MAX", 170)
    assert any(differs(batches) for batches in histories(40))
    monkeypatch.setattr(folding, "MOST_OUTCOME_BYTES", 170)
    assert not any(differs(batches) for batches in histories(40))
