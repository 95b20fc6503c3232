"""Privileged changes: rights, credentials, unclean elections, features, voters, quotas.

Rule: the newest are shown in full, and all are counted. Secrets are starred in the rows already.
"""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from audit.reading.callers import caller
from audit.report.details import Details, RecordAt
from audit.report.facts import Rows
from audit.report.period import Period
from audit.report.tabular import Cell, ReportTable, at, count, table, text
from audit.report.words import moment, number

_ROWS: Final = 80
"""The most rows of each kind."""
_LONGEST: Final = 400
_UNCLEAN: Final = "unclean_election"
_GRAVE: Final = (_UNCLEAN, "voters", "feature")
KINDS: Final[dict[str, str]] = {
    "acl": "Access rights (ACLs)",
    "user": "Users' credentials (SCRAM)",
    "token": "Delegation tokens",
    _UNCLEAN: "Unclean elections, and whether they are allowed",
    "feature": "Features",
    "voters": "Voters of the quorum",
    "quota": "Quotas",
}


NOUNS: Final = {
    _UNCLEAN: "unclean elections",
    "acl": "access rights",
    "user": "credentials",
    "token": "delegation tokens",
    "feature": "features",
    "voters": "voters",
    "quota": "quotas",
}
"""The noun for each kind in a sentence."""


_RESOURCES: Final = {
    "acl": ("acl:*",),
    "user": ("user:*",),
    "token": ("token:*",),
    "feature": ("feature:*",),
    "voters": ("quorum",),
    "quota": ("quota:*",),
    _UNCLEAN: ("partition:*", "config:*"),
}
"""What to ask `audit log` for to see the changes of a kind."""


class PrivilegedSection(NamedTuple):
    """The section."""

    total: int
    principals: int
    kinds: Counter[str]
    unclean: int
    """Unclean elections."""
    allowed: int
    """Changes of the setting that allows them."""
    counts: ReportTable
    grave: ReportTable
    """Rare changes, which auditors ask about first."""
    everyday: ReportTable


def privileged(rows: Rows, period: Period, details: Details) -> PrivilegedSection:
    """Read the rows of `privileged` within the period."""
    kinds: Counter[str] = Counter()
    settings = 0
    who: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    principals: set[str] = set()
    latest: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=_ROWS))
    behind: dict[str, list[RecordAt]] = defaultdict(list)
    for row in rows:
        offset, timestamp_ms, _, kind, subject, *_ = row
        if not period.from_ms <= timestamp_ms <= period.until_ms:
            continue
        kinds[kind] += 1
        principals.add(row[5])
        settings += kind == _UNCLEAN and subject.startswith("config:")
        who.setdefault(kind, Counter())[_by(row)] += 1
        latest[kind].append(row)
        behind[kind].append(RecordAt(offset))
    everyday = [kind for kind in latest if kind not in _GRAVE]
    return PrivilegedSection(
        kinds.total(),
        len(principals),
        kinds,
        kinds[_UNCLEAN] - settings,
        settings,
        _counts(who, behind, details),
        _table("Elections, voters and features, newest first", latest, kinds, _GRAVE, details),
        _table("Rights, credentials and quotas, newest first", latest, kinds, everyday, details),
    )


def _table(
    caption: str,
    latest: dict[str, deque[Any]],
    kinds: Counter[str],
    of: Sequence[str],
    details: Details,
) -> ReportTable:
    shown = sorted(chain.from_iterable(latest[kind] for kind in of), reverse=True)
    total = sum(kinds[kind] for kind in of)
    left_out = ""
    if total > len(shown):
        left_out = (
            f"The newest {_ROWS} of each kind; {number(total - len(shown))} of {number(total)} are "
            "not on this page."
        )
    columns = ["Time", "Kind", "What", "By", "Why", "#Offset"]
    return table(caption, columns, [_row(each, details) for each in shown], left_out=left_out)


def shortened(words: str) -> str:
    """Cut text that is too long for a table, and show that it was cut."""
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _by(row: tuple[Any, ...]) -> str:
    """Return the caller of a row, with authentication and address."""
    _, _, _, _, _, who, behalf, _, _, _, method, address, role, _ = row
    return caller(
        str(who), str(behalf or ""), str(method or ""), str(address or ""), str(role or "")
    )


def _row(row: tuple[Any, ...], details: Details) -> tuple[Cell, ...]:
    offset, timestamp_ms, _, kind, subject, _, _, _, operation, reason, *_, fields = row
    title = f"{operation or kind} at offset {offset}"
    ref = details.add(title, 1, [RecordAt(offset)], "log", *details.span(offset, offset))
    return (
        at(timestamp_ms),
        text(str(kind).replace("_", " "), "bad" if kind == _UNCLEAN else "tag"),
        Cell(shortened(str(subject)), None, "long", shortened(_readable(str(fields)))),
        Cell(shortened(_by(row)), None, "name", str(operation or "")),
        text(shortened(str(reason or "")), "long"),
        Cell(str(offset), offset, "num mono", ref=ref),
    )


def _readable(fields: str) -> str:
    """Write a record's JSON as `name: value` pairs, with readable times, without empty values."""
    try:
        pairs = json.loads(fields)
    except json.JSONDecodeError:
        return fields
    if not isinstance(pairs, dict):
        return fields
    return " \N{MIDDLE DOT} ".join(
        f"{name}: {_value(name, value)}"
        for name, value in pairs.items()
        if value not in (None, "", [])
    )


def _value(name: str, value: object) -> str:
    if name.endswith("Timestamp") and isinstance(value, int) and value > 0:
        return moment(value)
    if isinstance(value, list):
        return ", ".join(_value("", each) for each in value)
    if isinstance(value, dict):
        return " ".join(f"{key} {_value(key, each)}" for key, each in value.items())
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _counts(
    who: dict[str, Counter[str]], behind: dict[str, list[RecordAt]], details: Details
) -> ReportTable:
    rows = []
    for kind, names in who.items():
        most = [f"{name}: {number(n)}" for name, n in names.most_common(5)]
        if len(names) > 5:
            most.append(f"and {len(names) - 5} more")
        title, records = KINDS.get(kind, kind), behind[kind]
        alarming = "bad" if kind == _UNCLEAN and records else ""
        ref = None
        if records:
            span = details.span(records[0].offset, records[-1].offset)
            words = [word for each in _RESOURCES.get(kind, ()) for word in ("--resource", each)]
            ref = details.add(title, len(records), records, "log", *words, *span)
        total = count(len(records), alarming, ref)
        rows.append((text(title), total, text("; ".join(most), "long")))
    return table(
        "Privileged changes by kind", ["Kind", "#Changes", "By whom"], rows, filtered=False
    )
