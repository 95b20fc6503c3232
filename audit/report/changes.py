"""Who changed how much, when, from where and by what authentication: people first.

Rule: a record that counts is a change. The log's own bookkeeping is summed separately and not
drawn: answers kept for retries, counts of refused attempts, no-ops, and the marks of epochs and
transactions. Brokers and
controllers write far more than people do, so the two groups have a drawing each.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from audit.report.details import Details, RecordAt
from audit.report.drawing import DrawnMark, lanes
from audit.report.facts import ChangeSum
from audit.report.figure import Figure, inset, lane_name
from audit.report.period import Period, Pieces
from audit.report.tabular import Cell, ReportTable, at, count, missing, table, text
from audit.report.words import DAY_MS, counted, day_ms, day_of, number
from metadata.sealed_addresses import shown_address

_BOOKKEEPING: Final = frozenset(
    {
        "ATTEMPTS_RECORD",
        "NO_OP_RECORD",
        "REQUEST_OUTCOME_RECORD",
        "BEGIN_EPOCH_RECORD",
        "BEGIN_TRANSACTION_RECORD",
        "END_TRANSACTION_RECORD",
        "ABORT_TRANSACTION_RECORD",
    }
)
_CLUSTER: Final = {"Broker": "brokers", "Controller": "controllers"}
"""Principals of the cluster itself, by the word before the colon, and the name of their sum."""
_PATTERNS: Final = {name: f"{kind}:*" for kind, name in _CLUSTER.items()}
"""Who is meant by the name of a sum."""
_MOST_PIECES: Final = 92
_MOST_ROWS: Final = 150
_MOST_LANES: Final = 24
_WAYS: Final = 3
"""The most ways that a bar names."""
_STEPS: Final = ((1, 0.25), (10, 0.5), (100, 0.75), (1_000, 1.0))
"""From how many changes on a bar is how high."""
_KEY: Final = (
    (
        "a quarter of the lane: 1 change and more; a half: 10; three quarters: 100; all: 1 000",
        "normal",
    ),
)
_MARKED: Final = ("a finding is among them", "bad")
_TIMES: Final = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}"


class Group(NamedTuple):
    """People and services, or the cluster itself."""

    total: int
    principals: int
    busiest: tuple[str, int]
    """Who changed most, and how much; an empty name if nobody changed anything."""
    figure: Figure | None
    table: ReportTable


class ChangesSection(NamedTuple):
    """The section."""

    people: Group
    cluster: Group
    bookkeeping: int


class _Sum:
    """Changes of one principal: with one operation, or in one piece of time."""

    def __init__(self) -> None:
        self.count = 0
        self.types: Counter[str] = Counter()
        self.ways: Counter[str] = Counter()
        """How the principal came: authentication and address."""
        self.first = self.last = (0, 0)
        """Offset and time."""
        self.offsets: list[int] = []

    def add(self, row: ChangeSum) -> None:
        first, last = (row.first_offset, row.first_ms), (row.last_offset, row.last_ms)
        self.first = min(self.first, first) if self.count else first
        self.last = max(self.last, last)
        self.count += row.records
        self.types[row.type] += row.records
        self.ways[way(row.auth_method, row.client_address)] += row.records
        self.offsets += row.offsets

    def behind(self) -> list[RecordAt]:
        return [RecordAt(offset) for offset in sorted(self.offsets)]


class _Group:
    """Sums of one group."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str, str], _Sum] = defaultdict(_Sum)
        """By principal, way and operation."""
        self.totals: Counter[str] = Counter()
        self.drawn: dict[str, dict[int, _Sum]] = defaultdict(lambda: defaultdict(_Sum))
        """By lane, then by piece."""

    def order(self) -> list[str]:
        """Return the lanes, the largest first."""
        totals = {
            lane: sum(each.count for each in places.values()) for lane, places in self.drawn.items()
        }
        return sorted(totals, key=lambda lane: (-totals[lane], lane))


def way(auth_method: str, client_address: str) -> str:
    """Return how a caller came: `token from 10.0.0.7`; a dash if the log doesn't say.

    A sealed address is told by the number of its subject.
    """
    words = [auth_method, client_address and f"from {shown_address(client_address)}"]
    return " ".join(filter(None, words)) or "\N{EN DASH}"


def changes(
    rows: Iterable[ChangeSum],
    period: Period,
    details: Details,
    marked: Collection[tuple[str, str]] = (),
) -> ChangesSection:
    """Sum the rows whose day lies in the period.

    `marked`: principals and days with a finding; their bars are red.
    """
    first_day, last_day = day_of(period.from_ms), day_of(period.until_ms)
    pieces = period.pieces(_MOST_PIECES, DAY_MS)
    people, cluster = _Group(), _Group()
    bookkeeping = 0
    for row in rows:
        if not first_day <= row.day <= last_day:
            continue
        if row.type in _BOOKKEEPING:
            bookkeeping += row.records
            continue
        ours = _CLUSTER.get(row.principal.partition(":")[0])
        group = cluster if ours else people
        came = way(row.auth_method, row.client_address)
        group.sums[row.principal, came, row.operation].add(row)
        group.totals[row.principal] += row.records
        group.drawn[ours or row.principal][pieces.place(day_ms(row.day))].add(row)
    red = {(principal, pieces.place(day_ms(day))) for principal, day in marked}
    return ChangesSection(
        _finished(people, pieces, "people and services", details, red),
        _finished(cluster, pieces, "brokers and controllers", details, red),
        bookkeeping,
    )


def _finished(
    group: _Group, pieces: Pieces, what: str, details: Details, red: Collection[tuple[str, int]]
) -> Group:
    totals = group.totals
    most = max(totals, key=lambda name: (totals[name], name), default="")
    return Group(
        totals.total(),
        len(totals),
        (most, totals[most]),
        _figure(group, pieces, details, red) if totals else None,
        _table(group.sums, what, details),
    )


def _table(sums: dict[tuple[str, str, str], _Sum], what: str, details: Details) -> ReportTable:
    kept = sorted(sums.items(), key=lambda item: (-item[1].count, item[0]))
    rows = []
    for (principal, came, operation), found in kept[:_MOST_ROWS]:
        title = f"{operation or 'changes'} by {principal} ({came})"
        ref = _detail(details, title, principal, found, operation)
        rows.append(
            (
                Cell(principal, None, "name", came),
                text(operation, "word"),
                count(found.count, "", ref),
                text(_kinds(found.types), "long"),
                at(found.first[1]),
                at(found.last[1]),
            )
        )
    return table(
        f"Changes of {what}, by principal, authentication, address and operation",
        ["Principal, and how it came", "Operation", "#Changes", "Records", "First", "Last"],
        rows,
        left_out=missing(len(kept), _MOST_ROWS, "rows", "most changes"),
    )


def _detail(details: Details, title: str, principal: str, found: _Sum, operation: str = "") -> int:
    command = ["log"]
    if principal:
        command += ["--principal", principal]
    if operation:
        command += ["--operation", operation]
    command += details.span(found.first[0], found.last[0])
    return details.add(title, found.count, found.behind(), *command)


def _kinds(types: Counter[str]) -> str:
    """Name the record types, the most frequent first."""
    named = [f"{_readable(kind)}{_TIMES}{number(n)}" for kind, n in types.most_common(3)]
    if len(types) > 3:
        named.append(f"and {counted(len(types) - 3, 'other type')}")
    return ", ".join(named)


def _readable(kind: str) -> str:
    """Return `PARTITION_CHANGE_RECORD` as `partition change`."""
    return kind.removesuffix("_RECORD").replace("_", " ").lower()


def _figure(
    group: _Group, pieces: Pieces, details: Details, red: Collection[tuple[str, int]]
) -> Figure:
    named = {name for name, _ in red}
    order = sorted(group.order(), key=lambda name: name not in named)
    shown = order[:_MOST_LANES]
    marks = []
    for lane, name in enumerate(shown):
        for place, found in sorted(group.drawn[name].items()):
            tip = f"{pieces.name(place)}, {name}: {counted(found.count, 'change')}"
            if len(found.ways) <= _WAYS:
                tip += f" ({', '.join(sorted(found.ways))})"
            ref = _detail(details, tip, _PATTERNS.get(name, name), found)
            height = max(high for least, high in _STEPS if found.count >= least)
            tone = "bad" if (name, place) in red else "normal"
            marks.append(DrawnMark(*inset(pieces.span(place)), tone, tip, ref, lane, height))
    caption = ""
    if len(order) > len(shown):
        left = sum(group.totals[name] for name in order[len(shown) :])
        caption = (
            f"{counted(len(order) - len(shown), 'principal')} with fewer changes not drawn: "
            f"{number(left)} changes in all."
        )
    alt = (
        f"A lane for each of {', '.join(shown)}, with a bar for each {pieces.unit} in which it "
        "changed something. The table that follows has the sums."
    )
    key = (*_KEY, _MARKED) if any(mark.tone == "bad" for mark in marks) else _KEY
    drawing = lanes(marks, pieces.whole, len(shown), alt)
    names = tuple(map(lane_name, shown))
    return Figure(f"Changes per {pieces.unit}", drawing, caption, key, names)
