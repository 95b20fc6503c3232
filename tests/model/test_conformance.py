"""Seeds of the quorum, judged step by step by the specification's guards."""

from collections import Counter

import pytest

from quorum.guard import following
from quorum.guard.appends import Append, Judgement, judge
from quorum.guard.elections import Elections
from quorum.guard.following import Following
from quorum.guard.replication import Replication
from quorum.wire.frames import FrameKind
from tests.model.conformance import Conformance
from tests.simulation.patches import patched
from tests.simulation.quorum_seeds import Outcome, run_seed

SEEDS = (1, 2, 3, 4)
"""Power losses, a wild wire, jumps, slow disks."""


def cut_always(log, commit_index, previous, previous_term, entries) -> Judgement:
    """Judge as PySyncObj would: what fits at its beginning is given to the core whole."""
    if entries and log.term_at(previous) == previous_term:
        return Append(previous, previous_term, entries)
    return judge(log, commit_index, previous, previous_term, entries)


WITHOUT_A_RULE = {
    "acks leave at once": (
        (Following, "position_promised", lambda _self, _match: 0),
        "sends ack",
    ),
    "votes leave at once": (
        (
            Elections,
            "send_vote",
            lambda self, node: self._context.outbox.send(
                node.node_id, FrameKind.VOTE, self._context.term
            ),
        ),
        "sends vote",
    ),
    "the leader does not wait for its own copy": (
        (Replication, "borne_out", lambda _self, index: index),
        "Commit",
    ),
    "an append cuts without a conflict": (
        (following, "judge", cut_always),
        "TakeAppend, a conflict",
    ),
}


def judged(seed: int, conformance: Conformance) -> Outcome:
    """Run a seed under the judge."""
    with conformance.watch():
        return run_seed(seed, nodes=3)


@pytest.mark.slow
def test_what_the_code_does_the_specification_allows() -> None:
    """Each change of a journal and each promise is a step, and every kind of step occurs."""
    taken: Counter[str] = Counter()
    for seed in SEEDS:
        conformance = Conformance()
        outcome = judged(seed, conformance)
        assert not outcome.failure, f"{outcome.failure}\n{outcome.rerun}"
        taken += conformance.steps
    for step in ("Stand", "GrantVote", "Win", "Propose", "TakeAppend", "Commit", "JumpDone"):
        assert taken[step], f"no seed took {step}"
    assert taken["TakeAppend, a conflict"], "nothing was ever cut"


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_A_RULE)
def test_a_code_without_a_rule_takes_a_step_that_is_none(name) -> None:
    """The judge sees what happens, not what the guard believes."""
    patch, step = WITHOUT_A_RULE[name]
    with patched([patch]):
        failures = (judged(seed, Conformance()).failure for seed in (2, 9, 16))
        failure = next(filter(None, failures), "")
    assert "NotAStepError" in failure, failure
    assert step in failure
