"""The watcher: the same findings, however the log was cut; counting, waiting, gathering."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.findings.event_making import EventMaker
from audit.findings.events import AuditEvent, EventCaller
from audit.findings.finding import Finding
from audit.findings.rule_files import builtin_rules, read_rules
from audit.findings.rules import RuleSet
from audit.findings.watcher import Watcher
from audit.reading.settling import Moment
from tests.unit.audit.findings.made_up import moments_of

ALICE = EventCaller("User:alice", "", "certificate", "10.0.0.1")
THIEF = EventCaller("User:alice", "", "token", "10.9.9.9")
BROKER = EventCaller("Broker:3", "User:bob", "certificate", "10.1.0.3")
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SHORT = """
[deleted]
severity = "high"
kinds = ["topic_removed"]
count = 3
within = "10s"
per = ["actor"]
gather = "30s"
sentence = "{actor} deleted {count}: {subjects}"

[offline]
severity = "medium"
kinds = ["leader_lost"]
lasts = "5s"
until = ["leader_found"]
gather = "20s"
sentence = "{subject_count} for {longest}"

[granted]
severity = "low"
kinds = ["acl_added"]
per = ["grantee", "kind"]
gather = "7s"
sentence = "{times}: {grantees} from {addresses}"
"""
RULES = read_rules(SHORT, "short.toml")

kinds = st.sampled_from(["topic_removed", "leader_lost", "leader_found", "acl_added", "activity"])
subjects = st.sampled_from(["a", "b", "c"])
callers = st.sampled_from([ALICE, THIEF, BROKER])
steps = st.lists(
    st.tuples(st.integers(0, 6_000), kinds, subjects, callers, st.sampled_from(["", "User:new"])),
    max_size=60,
)


@given(steps, st.sets(st.integers(0, 60), max_size=6), st.booleans())
@settings(max_examples=150)
def test_cuts_change_nothing(
    drawn: Sequence[tuple[int, str, str, EventCaller, str]], cuts: set[int], restarts: bool
) -> None:
    """Also when the watcher is made anew from what it carried, and time passes without events."""
    events, now_ms = [], 1_000_000
    for offset, (pause_ms, kind, subject, caller, grantee) in enumerate(drawn):
        now_ms += pause_ms
        events.append(AuditEvent(offset, offset, now_ms, kind, subject, caller, grantee))
    end_ms = now_ms + 3_000
    whole = Watcher(RULES)
    expected = whole.step(events, end_ms)

    watcher, found = Watcher(RULES), []
    for piece in pieces(events, cuts):
        found += watcher.step(piece, piece[-1].time_ms if piece else 0)
        if restarts:
            watcher = Watcher(RULES, watcher.carried())
    found += watcher.step([], end_ms)
    assert found == expected
    assert watcher.still_open() == whole.still_open()
    assert watcher.carried() == whole.carried()


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_cuts_of_a_real_log_change_nothing(size: int) -> None:
    rules, log = builtin_rules(), moments_of(3, 7.0)
    expected = found_by(log, rules, len(log))
    assert len(expected) > 10
    assert found_by(log, rules, size if size > 1 else len(log) // 3) == expected


def found_by(log: list[Moment], rules: RuleSet, size: int) -> list[Finding]:
    """Watch a log in pieces of so many moments; both halves are made anew for each piece."""
    found: list[Finding] = []
    events_carried = carried = None
    for start in range(0, len(log), size):
        maker, watcher = EventMaker(events_carried), Watcher(rules, carried)
        for moment in log[start : start + size]:
            found += watcher.step(maker.step(moment), moment.time_ms)
        events_carried, carried = maker.carried(), watcher.carried()
    return found + Watcher(rules, carried).still_open()


def pieces(events: list[AuditEvent], cuts: set[int]) -> list[list[AuditEvent]]:
    places = sorted({0, *(min(cut, len(events)) for cut in cuts), len(events)})
    return [events[a:b] for a, b in pairwise(places)]


def at(
    second: float, kind: str, subject: str = "a", caller: EventCaller = ALICE, grantee: str = ""
) -> AuditEvent:
    """Return an event at a second; its offset is ten times that."""
    place = int(second * 10)
    return AuditEvent(place, place, int(second * 1_000), kind, subject, caller, grantee)


def test_counting_wants_enough_within_the_time() -> None:
    apart = [at(0, "topic_removed"), at(9, "topic_removed"), at(18, "topic_removed")]
    assert Watcher(RULES).step(apart, 60_000) == []
    close = [*apart, at(18.5, "topic_removed", "b"), at(19, "topic_removed", "c")]
    opened, closed = Watcher(RULES).step(close, 60_000)
    assert (opened.open, opened.count, opened.offset) == (True, 3, 90)
    assert (closed.open, closed.count, closed.offsets) == (False, 4, (90, 180, 185, 190))
    assert closed.id == opened.id
    assert closed.sentence == "User:alice deleted 4: a, b and c"


def test_counting_is_by_key() -> None:
    mixed = [at(n / 10, "topic_removed", caller=(ALICE, BROKER)[n % 2]) for n in range(4)]
    assert Watcher(RULES).step(mixed, 5_000) == []


def test_what_lasts_is_told_while_it_lasts() -> None:
    watcher = Watcher(RULES)
    assert watcher.step([at(1, "leader_lost", "partition:t-0")], 5_999) == []
    (opened,) = watcher.step([], 6_000)
    assert (opened.time_ms, opened.offset, opened.open) == (6_000, 10, True)
    (closed,) = watcher.step([at(14, "leader_found", "partition:t-0")], 30_000)
    assert closed.sentence == "1 partition for 13 s"


def test_what_ends_in_time_is_not_told() -> None:
    events = [at(1, "leader_lost"), at(5.9, "leader_found"), at(6, "leader_lost")]
    assert Watcher(RULES).step(events, 10_900) == []


def test_a_new_network_is_new_for_a_day() -> None:
    day = DAY_MS // 1_000
    watcher = Watcher(builtin_rules())
    early = [at(0, "activity"), at(5, "acl_added", "acl:1", THIEF)]
    assert "stolen_identity" not in rules_of(watcher.step(early))
    late = EventCaller("User:alice", "", "token", "172.16.0.1")
    found = watcher.step([at(day + 1, "acl_added", "acl:2", late, "User:mallory")])
    assert "stolen_identity" in rules_of(found)
    (stolen,) = [one for one in found if one.rule == "stolen_identity"]
    assert stolen.address == "172.16.0.1"
    usual = watcher.step([at(3 * day, "acl_added", "acl:3", late)], 4 * DAY_MS)
    assert "stolen_identity" not in {one.rule for one in usual if one.open}


def test_who_roams_is_not_judged_by_address() -> None:
    watcher, day = Watcher(builtin_rules()), DAY_MS // 1_000
    for number in range(12):
        caller = EventCaller("User:pod", "", "token", f"10.0.{number}.1")
        watcher.step([at(number, "activity", "", caller)])
    other = EventCaller("User:pod", "", "token", "10.7.7.7")
    assert "unusual_address" not in rules_of(watcher.step([at(2 * day, "activity", "", other)]))


def test_ids_are_unique_where_one_record_begins_two_findings() -> None:
    one = at(1, "acl_added", "acl:1", grantee="User:x")
    two = msgspec.structs.replace(one, grantee="User:y")
    found = Watcher(RULES).step([one, two])
    mine = [each.id for each in found if each.rule == "granted"]
    assert len(set(mine)) == 2


def test_who_held_rights_where_a_cut_log_begins_is_not_new() -> None:
    day = DAY_MS // 1_000
    later = [at(2 * day, "acl_added", "acl:2", grantee="User:old")]
    for known in (True, False):
        watcher = Watcher(builtin_rules())
        watcher.begin([at(0, "acl_added", "acl:1", grantee="User:old" if known else "User:x")])
        assert ("new_principal_with_rights" in rules_of(watcher.step(later))) is not known


def test_a_rule_that_is_gone_is_forgotten() -> None:
    watcher = Watcher(RULES)
    watcher.step([at(1, "leader_lost"), at(2, "acl_added"), at(3, "topic_removed")])
    later = Watcher(builtin_rules(), watcher.carried())
    assert {one.rule for one in later.step([], DAY_MS)}.isdisjoint({"granted", "offline"})


def rules_of(found: list[Finding]) -> set[str]:
    return {one.rule for one in found}
