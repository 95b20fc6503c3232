"""A source leads now and then, while controllers crash and networks part."""

from typing import Any

import pytest

from tests.simulation import seeds

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["power", "cuts"])
def test_under_leader_changes_only_the_bridge_changes_what_is_followed(
    monkeypatch: pytest.MonkeyPatch, kind: str, seed: int
) -> None:
    drawn = seeds.shape_of

    def bridged(*given: Any) -> Any:
        shape, schedule = drawn(*given)
        # A broker that comes back would have to wait until the source leads no more.
        shape.bridged, shape.broker_fault_schedule = True, 0.0
        return shape, schedule

    monkeypatch.setattr(seeds, "shape_of", bridged)
    outcome = seeds.run_seed(seed, kind=kind, operations=())
    assert not outcome.failure, outcome.failure
    facts = outcome.facts
    assert facts["acknowledged steps in the log"] > 3
    assert facts["changes judged while the source leads"] > 3
    assert facts["others' change: SOURCE_LEADS"] > 3
