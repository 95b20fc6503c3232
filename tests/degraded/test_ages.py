"""The judges of answers notice a build that reports ages that are too small.

In all seeds of `tests.simulation` with stale reads, they judge the real product.
"""

from typing import Any

import pytest

from controller.http.node_view import NodeView
from quorum.guard.freshness import DeliveryFreshness
from quorum.wire.frame_types import DigestFrame
from runtime.simulated.world import World
from tests.simulation.answers import Judgement
from tests.simulation.patches import Patch, patched
from tests.simulation.seeds import run_seed

pytestmark = pytest.mark.simulation

_read, _heard = NodeView.read, DeliveryFreshness.heard


def _leaders_are_current(self: NodeView) -> Any:
    """As it was: who leads, as far as it knows, is as old as nothing."""
    view = _read(self)
    return view if self.leader.proposer.pending is None else view._replace(age_ms=0)


def _heard_just_now(self: DeliveryFreshness, replica: Any, frame: DigestFrame) -> None:
    """As if nothing were ever under way, or waited in a socket."""
    _heard(self, replica, frame._replace(echo_us=int(self._context.now * 1_000_000)))


BROKEN: dict[str, tuple[Patch, int]] = {
    "a leader is always current": ((NodeView, "read", _leaders_are_current), 5),
    "age from arrival": ((DeliveryFreshness, "heard", _heard_just_now), 13),
}
"""What is broken, and a seed that saw it; those behind it are tried as well."""
_SEEDS = 10


def said_of(patch: Patch, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the judgement at the end says; nobody else ends the run."""
    found: list[str] = []
    monkeypatch.setattr(World, "fail", lambda _world, message, _node: found.append(message))
    judged: list[Judgement] = []
    judge = Judgement.judge
    monkeypatch.setattr(Judgement, "judge", lambda self: judged.append(self) or judge(self))
    with patched([patch]):
        run_seed(seed, kind="rivals")
    assert judged
    return [each for each in found if "an age of" in each]


@pytest.mark.parametrize("name", BROKEN)
def test_a_build_that_understates_ages_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, first = BROKEN[name]
    assert any(said_of(patch, first + number, monkeypatch) for number in range(_SEEDS))


def test_the_product_is_judged_and_understates_none() -> None:
    outcome = run_seed(3, kind="rivals")
    assert not outcome.failure, outcome.rerun
    assert outcome.facts["ages judged"] > 30
