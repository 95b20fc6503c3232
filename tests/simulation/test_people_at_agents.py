"""People who ask agents in seeds of the kind `erasures`, and checks that run inside agents."""

import pytest

from runtime.simulated.world import SimulationFailedError
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.seeds import run_seed

pytestmark = pytest.mark.simulation

SEEN = (
    "people: erasures",
    "people: known by pseudonym",
    "people: known by name",
    "people: refused by name",
    "people: refused by pseudonym",
    "people: told to wait",
    "people: shown some topics",
    "people: agents at rest with",
    "people: agents at rest without",
)


def test_people_ask_agents_in_every_way() -> None:
    outcome = run_seed(3000, kind="erasures", operations=())
    assert not outcome.failure, f"{outcome.rerun}\n{outcome.failure}"
    assert not [fact for fact in SEEN if not outcome.facts[fact]]


def test_a_check_inside_an_agent_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent notes what its publishers raise, and goes on."""
    cluster = Cluster(1, Shape())
    state_at = cluster.invariants.state_at

    def another_state(offset: int, shared: int, who: str) -> None:
        state_at(offset, shared + (who == "a broker"), who)

    monkeypatch.setattr(cluster.invariants, "state_at", another_state)
    cluster.start_all()
    with pytest.raises(SimulationFailedError, match="I4: a broker"):
        cluster.world.run_for(10.0)
