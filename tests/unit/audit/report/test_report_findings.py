"""The findings of the report: the worst in full, with who, from where, how, when, why, records."""

from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="the report is written by jinja2: logberg[audit]")

from audit.findings.log_findings import of_log
from audit.findings.rule_files import builtin_rules
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.reading.feed import Question
from audit.report.details import Details
from audit.report.findings import FindingsSection, findings, marked
from audit.report.gathering import Wanted, gather
from audit.report.period import Period
from audit.report.words import DAY_MS
from tests.report import sample
from tests.report.sample import BEGIN_MS, HOSTILE, PERIOD, REASON

RULES = builtin_rules().rules


def section(
    found: list, period: Period = PERIOD, details: Details | None = None
) -> FindingsSection:
    return findings(found, RULES, period, details or Details("log"))


def test_the_worst_are_in_full_and_the_others_in_a_table() -> None:
    details = Details("log")
    made = section(sample.findings(), PERIOD, details)
    assert made.sentence == "12 findings, the worst first: 1 critical, 8 high and 3 low."
    assert [each.severity for each in made.full] == ["critical", *["high"] * 5]
    worst = made.full[0]
    assert (worst.who, worst.how, worst.address) == (HOSTILE, "token", "10.9.77.3")
    assert (worst.when, worst.why) == ("2026-10-25 00:00:00", REASON)
    assert worst.records == "5 records: 70, 71, 72, \N{HORIZONTAL ELLIPSIS}"
    assert [each.offset for each in details.all[worst.ref].records] == [70, 71, 72, 75, 79]
    assert details.all[worst.ref].command == ("logberg audit findings log --id stolen_identity@70")
    assert [each[0].text for each in made.others.rows] == [*["high"] * 3, *["low"] * 3]
    assert made.others.rows[0][2].text == "User:ana (token from 10.9.77.3)"
    assert made.full[0].advice


def test_if_nothing_is_bad_the_first_is_still_in_full() -> None:
    made = section(sample.findings()[-3:])
    assert [each.sentence for each in made.full] == ["low 0"]
    assert (made.full[0].how, made.full[0].address) == ("not in the log", "not in the log")
    assert made.full[0].tone == ""
    assert len(made.others.rows) == 2


def test_no_finding_is_said() -> None:
    made = section([])
    assert made.sentence == "No rule found anything that somebody should look at."
    assert (made.full, made.others.rows) == ((), ())


def test_what_ended_before_the_period_is_left_out() -> None:
    late = Period(BEGIN_MS + 6 * DAY_MS, PERIOD.until_ms)
    assert section(sample.findings(), late).total == 0


def test_bars_are_marked_where_a_person_has_a_bad_finding() -> None:
    cluster = sample.finding(7, auth_method="internal", principal="Controller:1")
    days = marked([*sample.findings(), cluster])
    assert days == {(HOSTILE, "2026-10-25"), ("User:ana", "2026-10-25")}


@pytest.mark.slow
def test_they_are_those_of_the_command_and_the_intruder_is_first(tmp_path: Path) -> None:
    history = write_history(tmp_path, days=7, seed=7, replicas=1)
    replicas = open_replicas(str(history.folder))
    facts = gather(replicas, Wanted(None, None, None, 0), lambda *_: None)
    found = facts.history.read(lambda _: None).findings
    assert list(found) == of_log(Question(replicas))
    assert found[0].severity.word == "critical"
    assert (found[0].principal, found[0].address) == ("User:connect", "10.9.77.3")
