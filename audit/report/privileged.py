"""Privileged changes: rights, credentials, unclean elections, features, voters, quotas.

Rule: the newest are shown in full; all are counted. Secrets are starred in the rows already.
"""

from collections import Counter, deque
from typing import Final, NamedTuple

from audit.report.facts import Rows
from audit.report.period import Period
from audit.report.tabular import Cell, Table, at, count, missing, table, text

_ROWS: Final = 300
_LONGEST: Final = 400
_UNCLEAN: Final = "unclean_election"
KINDS: Final = {
    "acl": "Access rights (ACLs)",
    "user": "Users' credentials (SCRAM)",
    "token": "Delegation tokens",
    _UNCLEAN: "Unclean elections, and whether they are allowed",
    "feature": "Features",
    "voters": "Voters of the quorum",
    "quota": "Quotas",
}


class Privileged(NamedTuple):
    """The section."""

    total: int
    principals: int
    kinds: Counter[str]
    unclean: int
    """Unclean elections."""
    allowed: int
    """Settings that say whether they are allowed."""
    counts: Table
    table: Table


def privileged(rows: Rows, period: Period) -> Privileged:
    """Read the rows of `privileged` within the period."""
    kinds: Counter[str] = Counter()
    settings = 0
    who: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    latest: deque[tuple[Cell, ...]] = deque(maxlen=_ROWS)
    for row in rows:
        _, timestamp_ms, _, kind, subject, principal, behalf, *_ = row
        if not period.from_ms <= timestamp_ms <= period.until_ms:
            continue
        kinds[kind] += 1
        settings += kind == _UNCLEAN and subject.startswith("config:")
        who.setdefault(kind, Counter())[said_by(principal, behalf)] += 1
        latest.appendleft(_row(row))
    names = set().union(*who.values())
    return Privileged(
        kinds.total(),
        len(names),
        kinds,
        kinds[_UNCLEAN] - settings,
        settings,
        _counts(kinds, who),
        table(
            "Privileged changes, newest first",
            ["Time", "Kind", "What", "By", "Operation", "Why", "#Offset"],
            latest,
            left_out=missing(kinds.total(), _ROWS, "change", "the latest time"),
        ),
    )


def said_by(principal: str, behalf: str) -> str:
    """Name who did it; a broker that forwards a request names for whom."""
    return f"{principal} for {behalf}" if behalf else principal


def shortened(words: str) -> str:
    """Cut what is longer than a table can bear, and show that it was cut."""
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _row(row: tuple[object, ...]) -> tuple[Cell, ...]:
    offset, timestamp_ms, _, kind, subject, who, behalf, _, operation, reason, fields = row
    assert isinstance(offset, int)
    assert isinstance(timestamp_ms, int)
    return (
        at(timestamp_ms),
        text(str(kind).replace("_", " "), "bad" if kind == _UNCLEAN else "tag"),
        Cell(shortened(str(subject)), None, "long", shortened(str(fields))),
        text(shortened(said_by(str(who), str(behalf or ""))), "name"),
        text(str(operation)),
        text(shortened(str(reason or "")), "long"),
        Cell(str(offset), offset, "num mono"),
    )


def _counts(kinds: Counter[str], who: dict[str, Counter[str]]) -> Table:
    rows = []
    for kind, names in who.items():
        most = [f"{name} ({n})" for name, n in names.most_common(5)]
        if len(names) > 5:
            most.append(f"and {len(names) - 5} more")
        title = KINDS.get(kind, kind)
        alarming = "bad" if kind == _UNCLEAN and kinds[kind] else ""
        rows.append((text(title), count(kinds[kind], alarming), text(", ".join(most), "long")))
    return table(
        "Privileged changes by kind", ["Kind", "#Changes", "By whom"], rows, filtered=False
    )
