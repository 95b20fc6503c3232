"""The findings, worst first: what somebody should look at, who did it, from where, and why.

Rule: the rules of `audit.findings` decide what is a finding and how bad it is. The worst are shown
in full, so that the page's first lines say what matters; the others are rows of a table.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from audit.findings.finding import Finding
from audit.findings.rules import FindingRule, Severity
from audit.reading.callers import caller
from audit.report.details import Details, RecordAt
from audit.report.period import Period
from audit.report.tabular import Cell, ReportTable, at, count, missing, table, text
from audit.report.words import counted, day_of, listed, moment, number

_FULL: Final = 6
"""The most findings that are shown in full."""
_ROWS: Final = 100
_OFFSETS: Final = 3
"""How many offsets are written beside a finding."""
_TONES: Final = {Severity.CRITICAL: "bad", Severity.HIGH: "bad", Severity.MEDIUM: "warn"}
_INTERNAL: Final = "internal"
"""The auth method of a controller's own decisions."""

_ITSELF: Final = "the controller itself"
_UNKNOWN: Final = "not in the log"


class FullFinding(NamedTuple):
    """A finding that is shown in full."""

    severity: str
    tone: str
    sentence: str
    who: str
    how: str
    """The authentication."""
    address: str
    when: str
    why: str
    records: str
    ref: int
    meaning: str
    advice: str


class FindingsSection(NamedTuple):
    """The section."""

    total: int
    sentence: str
    full: tuple[FullFinding, ...]
    others: ReportTable


_NOT_JUDGED: Final = (
    " Addresses in this log are sealed, so no rule judged from where those changes came: "
    "`logberg audit findings --cluster-key` does."
)


def findings(
    found: Sequence[Finding],
    rules: Sequence[FindingRule],
    period: Period,
    details: Details,
    *,
    sealed: bool = False,
) -> FindingsSection:
    """Return the findings of the period; `found` has the worst first.

    `sealed`: some addresses in the log are sealed, and rules did not judge those.
    """
    ours = [each for each in found if each.until_ms >= period.from_ms]
    by_name = {rule.name: rule for rule in rules}
    worst = [each for each in ours if each.severity >= Severity.HIGH][:_FULL]
    full = worst or ours[:1]
    return FindingsSection(
        len(ours),
        _sentence(ours) + (_NOT_JUDGED if sealed else ""),
        tuple(_full(each, by_name[each.rule], details) for each in full),
        _table(ours[len(full) :], details),
    )


def marked(found: Sequence[Finding]) -> set[tuple[str, str]]:
    """Return the principals and days with a finding that is high or worse."""
    return {
        (each.principal, day_of(each.time_ms))
        for each in found
        if each.severity >= Severity.HIGH and each.auth_method != _INTERNAL
    }


def _sentence(ours: Sequence[Finding]) -> str:
    if not ours:
        return "No rule found anything that somebody should look at."
    by_severity = Counter(each.severity for each in ours)
    said = [
        f"{number(by_severity[each])} {each.word}" for each in sorted(by_severity, reverse=True)
    ]
    return f"{counted(len(ours), 'finding')}, the worst first: {listed(said)}."


def _full(each: Finding, rule: FindingRule, details: Details) -> FullFinding:
    shown = ", ".join(map(number, each.offsets[:_OFFSETS]))
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(each.offsets) > _OFFSETS else ""
    return FullFinding(
        each.severity.word,
        _TONES.get(each.severity, ""),
        each.sentence,
        caller(each.principal, each.on_behalf_of, acted_as=each.acted_as),
        each.auth_method or _UNKNOWN,
        each.address or (_ITSELF if each.auth_method == _INTERNAL else _UNKNOWN),
        moment(each.time_ms),
        each.reason or "no reason given",
        f"{counted(len(each.offsets), 'record')}: {shown}{more}",
        _detail(each, details),
        rule.meaning,
        rule.advice,
    )


def _detail(each: Finding, details: Details) -> int:
    records = [RecordAt(offset) for offset in each.offsets]
    return details.add(each.sentence, len(records), records, "findings", "--id", each.id)


def _table(others: Sequence[Finding], details: Details) -> ReportTable:
    rows = [
        (
            Cell(each.severity.word, int(each.severity), _TONES.get(each.severity, "")),
            text(each.sentence, "long"),
            text(
                caller(
                    each.principal,
                    each.on_behalf_of,
                    each.auth_method,
                    each.address,
                    each.acted_as,
                ),
                "name",
            ),
            at(each.time_ms),
            text(each.reason, "long"),
            count(len(each.offsets), "", _detail(each, details)),
        )
        for each in others[:_ROWS]
    ]
    return table(
        "Further findings, the worst first",
        ["Severity", "What was found", "Who, and how it came", "When, UTC", "Why", "#Records"],
        rows,
        left_out=missing(len(others), _ROWS, "findings", "the highest severity"),
    )
