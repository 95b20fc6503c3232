"""The findings of made-up months: the intruder comes first, they are few, and none is lost.

Rule: the histories are those of `logberg audit generate`, which marks nothing. Their facts say what
happened in them.
"""

from functools import lru_cache

import pytest

from audit.embedded.privileged import privileged
from audit.findings.event_making import EventMaker
from audit.findings.events import AuditEvent
from audit.findings.finding import Finding
from audit.findings.log_findings import of_log
from audit.findings.rules import Severity
from audit.findings.sieve import Sieve
from audit.generated.facts import Fact
from audit.reading.feed import Question
from audit.reading.settling import Moment
from tests.unit.audit.findings.made_up import MONTH, lived, moments_of, replica

MOST = 50
SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_intruder_comes_first_and_findings_are_few(seed: int) -> None:
    (intrusion,) = facts("intrusion", seed)
    found = found_in(seed)
    first = found[0]
    assert (first.rule, first.severity) == ("stolen_identity", Severity.CRITICAL)
    assert (first.principal, first.address) == (intrusion.principal, "10.9.77.3")
    assert first.offset == intrusion.from_offset
    assert "User:mallory" in first.sentence
    assert len(found) <= MOST
    assert len({one.id for one in found}) == len(found)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_grouping_loses_no_privileged_change(seed: int) -> None:
    question = Question([replica(seed, MONTH)])
    covered = {offset for one in found_in(seed) for offset in one.offsets}
    missed = [row for row in privileged(question) if row[0] not in covered]
    assert [row[3] for row in missed if '"value":"false"' not in row[-1]] == []


@pytest.mark.parametrize(
    ("kind", "rule"),
    [("unclean_election", "unclean_election"), ("broker_flapped", "brokers_flapping")],
)
def test_what_happened_is_found(kind: str, rule: str) -> None:
    for fact in facts(kind, 1):
        near = [one for one in found_in(1) if one.rule == rule and touches(one, fact)]
        assert near, fact
        if rule == "brokers_flapping":
            assert fact.subject in {one.subject for one in near}


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_kept_records_give_the_same_events(seed: int) -> None:
    """A caller that hands over only what a `Sieve` keeps, in two pieces, gets the same events."""
    whole, kept = EventMaker(), EventMaker()
    all_moments = moments_of(seed, MONTH)
    half = all_moments[len(all_moments) // 2].base
    sieves = {False: Sieve(), True: Sieve()}
    records = dropped = 0
    for moment in all_moments:
        sieve = sieves[moment.base >= half]
        some = [one for one in moment.records if sieve.keeps(one.header, one.record)]
        records += len(moment.records)
        dropped += len(moment.records) - len(some)
        events = kept.step(Moment(moment.base, moment.time_ms, some)) if some else []
        assert no_repeats(events) == no_repeats(whole.step(moment))
    assert dropped > records // 3
    assert kept.carried() == whole.carried()


def facts(kind: str, seed: int) -> list[Fact]:
    return [fact for fact in lived(seed, MONTH)[1] if fact.kind == kind]


@lru_cache(maxsize=8)
def found_in(seed: int) -> list[Finding]:
    return of_log(Question([replica(seed, MONTH)]))


def touches(one: Finding, fact: Fact) -> bool:
    until = fact.from_offset if fact.until_offset is None else fact.until_offset
    return any(fact.from_offset <= offset <= until for offset in one.offsets)


def no_repeats(events: list[AuditEvent]) -> list[AuditEvent]:
    return [event for event in events if event.kind != "activity"]
