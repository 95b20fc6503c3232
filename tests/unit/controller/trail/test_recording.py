"""Rules say what is recorded: the first that matches decides, and defaults come last."""

import pytest

from controller.config import AttemptRule
from controller.trail.recording import Recording
from metadata.records import AttemptDetail, AttemptOutcome
from tests.unit.controller.trail.test_counting import BASE

REFUSED, ACCEPTED = AttemptOutcome.REFUSED, AttemptOutcome.ACCEPTED


def test_the_defaults() -> None:
    recording = Recording(())
    assert recording.detail(REFUSED, BASE) is AttemptDetail.METADATA
    assert recording.detail(AttemptOutcome.WOULD_BE_REFUSED, BASE) is AttemptDetail.METADATA
    assert recording.detail(ACCEPTED, BASE) is AttemptDetail.NONE
    assert not recording.of_accepted


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (AttemptRule(detail="none"), True),
        (AttemptRule(detail="none", outcome="refused"), True),
        (AttemptRule(detail="none", outcome="accepted"), False),
        (AttemptRule(detail="none", principals=("User:mal*",)), True),
        (AttemptRule(detail="none", principals=("",)), False),
        (AttemptRule(detail="none", principals=("User:ana", "User:mallory")), True),
        (AttemptRule(detail="none", operations=("delete_*",)), False),
        (AttemptRule(detail="none", resources=("topic:*",), addresses=("10.*",)), True),
        (AttemptRule(detail="none", resources=("topic:*",), addresses=("192.*",)), False),
    ],
)
def test_what_a_rule_matches(rule: AttemptRule, fits: bool) -> None:
    found = Recording((rule,)).detail(REFUSED, BASE)
    assert (found is AttemptDetail.NONE) is fits


def test_the_first_rule_decides() -> None:
    recording = Recording(
        (
            AttemptRule(detail="request", operations=("create_*",)),
            AttemptRule(detail="none", principals=("User:*",)),
            AttemptRule(detail="request-response", outcome="accepted"),
        )
    )
    assert recording.detail(REFUSED, BASE) is AttemptDetail.REQUEST
    assert recording.detail(REFUSED, BASE._replace(operation="status")) is AttemptDetail.NONE
    nobody = BASE._replace(operation="status", principal="")
    assert recording.detail(REFUSED, nobody) is AttemptDetail.METADATA
    assert recording.detail(ACCEPTED, nobody) is AttemptDetail.RESPONSE
    assert recording.of_accepted
    assert not Recording((AttemptRule(detail="none"),)).of_accepted
