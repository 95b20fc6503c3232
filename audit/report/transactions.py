"""Transactions that never counted: aborted ones, and the one that is open.

Rule: here each transaction is one row; `logberg audit log` shows their records. A transaction
begins at its BeginTransactionRecord. Of one that begins before the period,
only the records within the period are shown.
"""

from typing import Any, Final, NamedTuple

from audit.reading.callers import caller
from audit.report.details import MOST, Details, RecordAt
from audit.report.facts import Rows
from audit.report.period import Period
from audit.report.privileged import shortened
from audit.report.tabular import Cell, ReportTable, at, count, missing, table, text

_ROWS: Final = 100
_BEGIN: Final = "BEGIN_TRANSACTION_RECORD"


class Transactions(NamedTuple):
    """The section."""

    aborted: int
    records: int
    """The number of records in aborted transactions."""
    open: int
    table: ReportTable


class _Found:
    def __init__(self, first: Any) -> None:
        self.first = first
        self.last_offset: int = first[0]
        self.last_ms: int = first[1]
        self.records = 0

    def add(self, row: Any) -> None:
        self.last_offset, self.last_ms = row[0], row[1]
        self.records += 1


def transactions(rows: Rows, period: Period, details: Details) -> Transactions:
    """Group the rows of `log` that are not settled into transactions."""
    found: list[_Found] = []
    for row in rows:
        offset, kind, outcome = row[0], row[13], row[15]
        if outcome == "settled" or row[1] < period.from_ms:
            continue
        before = found[-1] if found else None
        follows = before is not None and before.first[15] == outcome
        if before is None or not follows or kind == _BEGIN or offset < before.last_offset:
            found.append(_Found(row))
        found[-1].add(row)
    aborted = [each for each in found if each.first[15] == "aborted"]
    return Transactions(
        len(aborted),
        sum(each.records for each in aborted),
        len(found) - len(aborted),
        table(
            "Transactions that don't count",
            ["Outcome", "Began", "Last record", "By", "Why", "#Records", "Offsets"],
            [_row(each, details) for each in found[: -_ROWS - 1 : -1]],
            left_out=missing(len(found), _ROWS, "transactions", "the latest begin"),
        ),
    )


def _row(each: _Found, details: Details) -> tuple[Cell, ...]:
    first = each.first
    offsets = [RecordAt(n) for n in range(first[0], min(first[0] + MOST, each.last_offset + 1))]
    title = f"{first[15]} transaction at offset {first[0]}"
    span = details.span(first[0], each.last_offset)
    ref = details.add(title, each.records, offsets, "log", *span)
    method, address, who, behalf = first[5], first[6], first[8], first[9]
    operation, reason = first[11], first[12]
    return (
        text(first[15], "warn"),
        at(first[1]),
        at(each.last_ms),
        Cell(shortened(caller(who, behalf, method, address, first[-1])), None, "name", operation),
        text(shortened(reason), "long"),
        count(each.records, "", ref),
        Cell(f"{first[0]} \N{EN DASH} {each.last_offset}", first[0], "mono"),
    )
