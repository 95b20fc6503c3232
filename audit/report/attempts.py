"""Refused attempts: who tried most, and the newest.

Rule: an attempt changed nothing, so it is summed here only. Counts are exact; the page shows those
who tried most, and says how many it leaves out.
"""

from collections import Counter, deque
from typing import Any, Final, NamedTuple

from audit.questions.attempts import NOBODY
from audit.reading.callers import caller
from audit.report.details import Details, RecordAt
from audit.report.facts import Rows
from audit.report.period import Period
from audit.report.privileged import shortened
from audit.report.tabular import Cell, ReportTable, at, count, table, text
from audit.report.words import counted, number

_ROWS: Final = 60
_REFUSED: Final = ("refused", "would_be_refused")


class AttemptsSection(NamedTuple):
    """The section."""

    total: int
    """How many attempts were refused, or would be."""
    callers: int
    sentence: str
    by_caller: ReportTable
    newest: ReportTable


class _Tried:
    """What one caller tried."""

    def __init__(self) -> None:
        self.count = 0
        self.what: Counter[str] = Counter()
        self.records: list[RecordAt] = []
        self.last_ms = 0


def attempts(rows: Rows, period: Period, details: Details) -> AttemptsSection:
    """Read the rows of `attempts` within the period."""
    found: dict[str, _Tried] = {}
    newest: deque[Any] = deque(maxlen=_ROWS)
    total = records = passed = 0
    for row in rows:
        offset, timestamp_ms, outcome, times = row[0], row[1], row[3], row[12]
        if outcome not in _REFUSED or not period.from_ms <= timestamp_ms <= period.until_ms:
            continue
        total += times
        records += 1
        passed += times if outcome != "refused" else 0
        tried = found.setdefault(_by(row), _Tried())
        tried.count += times
        tried.what[_what(row)] += times
        tried.records.append(RecordAt(offset))
        tried.last_ms = max(tried.last_ms, row[14])
        newest.append(row)
    most = sorted(found.items(), key=lambda each: (-each[1].count, each[0]))
    left_out = ""
    if len(most) > _ROWS:
        left_out = f"The {_ROWS} who tried most; {number(len(most) - _ROWS)} are not on this page."
    older = ""
    if records > len(newest):
        older = f"The newest {_ROWS} records; {number(records - len(newest))} are not on this page."
    return AttemptsSection(
        total,
        len(found),
        _sentence(total, len(found), passed),
        table(
            "Who was refused most",
            ["Who, and from where", "#Attempts", "What", "Last"],
            [_caller_row(name, tried, details) for name, tried in most[:_ROWS]],
            left_out=left_out,
        ),
        table(
            "The newest, newest first",
            ["Last", "Who, and from where", "What", "Why", "#Attempts", "#Offset"],
            [_row(row, details) for row in reversed(newest)],
            left_out=older,
        ),
    )


def _sentence(total: int, callers: int, passed: int) -> str:
    said = f"{counted(total, 'attempt')} by {counted(callers, 'caller')}."
    if passed:
        said += f" {number(passed)} of them were answered, because rights are only logged."
    return said


def _by(row: tuple[Any, ...]) -> str:
    who, method = str(row[4]) or NOBODY, str(row[6]) if row[4] else ""
    return caller(who, auth_method=method, client_address=str(row[9]))


def _what(row: tuple[Any, ...]) -> str:
    return f"{row[7]} {row[8]}".rstrip()


def _caller_row(name: str, tried: _Tried, details: Details) -> tuple[Cell, ...]:
    what = [f"{what}: {number(times)}" for what, times in tried.what.most_common(4)]
    if len(tried.what) > len(what):
        what.append(f"and {len(tried.what) - len(what)} more")
    span = details.span(tried.records[0].offset, tried.records[-1].offset)
    title = f"Refused attempts by {name}"
    ref = details.add(title, len(tried.records), tried.records, "log", "--type", "attempts", *span)
    return (
        text(shortened(name), "name"),
        count(tried.count, "", ref),
        text(shortened("; ".join(what)), "long"),
        at(tried.last_ms),
    )


def _row(row: tuple[Any, ...], details: Details) -> tuple[Cell, ...]:
    offset = row[0]
    span = details.span(offset, offset)
    ref = details.add(f"Attempts at offset {offset}", 1, [RecordAt(offset)], "log", *span)
    return (
        at(row[14]),
        text(shortened(_by(row)), "name"),
        text(shortened(_what(row)), "long"),
        text(shortened(str(row[11] or row[10])), "long"),
        count(row[12], ""),
        Cell(str(offset), offset, "num mono", ref=ref),
    )
