"""`logberg audit availability`: how long partitions and brokers were unavailable, and when."""

from collections.abc import Iterable, Sequence
from operator import add
from typing import Any, Final, NamedTuple

import click
from rich.text import Text

from audit.embedded.availability import BROKER, PARTITION, Row, availability_since
from audit.places.replicas import one_replica
from audit.questions.search import last_offset, since_ms
from audit.reading.feed import Feed, Question
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.search_options import moment_options

TOPIC: Final = "topic"
_BAR: Final = 24
"""Characters of the longest bar."""


class Sums(NamedTuple):
    """Milliseconds, and a number of changes."""

    present: int = 0
    offline: int = 0
    under_min_isr: int = 0
    fenced: int = 0
    leader_changes: int = 0

    def plus(self, more: Sequence[int]) -> "Sums":
        """Return the sum."""
        return Sums(*(mine + other for mine, other in zip(self, more, strict=True)))


@click.command("availability")
@where_argument
@moment_options
@click.option(
    "--by",
    type=click.Choice([PARTITION, TOPIC, BROKER]),
    default=PARTITION,
    show_default=True,
    help="Give the times of partitions, topics or brokers.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many of the worst to list.",
)
@keep_going_option
@output_option
def command(
    where: str,
    from_: str | None,
    to: str | None,
    by: str,
    worst: int,
    keep_going: bool,
    output: str,
) -> None:
    """Show how long partitions had no leader or were under min ISR, and brokers were fenced.

    The times come from the timestamps of batches, so they end with the last batch. The output has
    the totals, each day, and the worst. A bar is the time without a leader (of a broker: the
    time fenced), relative to the longest one.
    """
    notes: list[str] = []
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        end, begin_ms = last_offset(reader, to), since_ms(reader, from_)
        with progress("reading the log") as on_progress:
            feed = Feed(Question([replica], end, on_progress, notes, damage))
            days, things = _summed(availability_since(feed, begin_ms), by)
    print_notes(notes)
    ranked = sorted(things.items(), key=lambda item: (*_badness(item[1], by), item[0]))[:worst]
    total = _total(things.values())
    if output == "json":
        _print_json(by, total, days, ranked)
    else:
        _print_tables(by, total, days, ranked, len(things))
    fail_for(damage)


def _summed(rows: Iterable[Row], by: str) -> tuple[dict[str, Sums], dict[str, Sums]]:
    """Return the sums of each day and of each thing. The rows are too many to keep."""
    days: dict[str, list[int]] = {}
    things: dict[str, list[int]] = {}
    wanted = BROKER if by == BROKER else PARTITION
    for kind, key, day, *figures in rows:
        if kind == wanted:
            _add(days, day, figures)
            _add(things, _topic_of(key) if by == TOPIC else key, figures)
    return (
        {day: Sums(*figures) for day, figures in days.items()},
        {key: Sums(*figures) for key, figures in things.items()},
    )


def _add(sums: dict[str, list[int]], key: str, figures: list[int]) -> None:
    known = sums.get(key)
    sums[key] = figures if known is None else list(map(add, known, figures))


def _topic_of(key: str) -> str:
    """Return the name and id of a partition's topic."""
    partition, _, topic_id = key.rpartition("@")
    return f"{partition.rpartition('-')[0]}@{topic_id}"


def _total(sums: Iterable[Sums]) -> Sums:
    total = Sums()
    for one in sums:
        total = total.plus(one)
    return total


def _badness(sums: Sums, by: str) -> tuple[int, ...]:
    """Return a sort key that puts the worst first."""
    if by == BROKER:
        return (-sums.fenced,)
    return (-sums.offline, -sums.under_min_isr, -sums.leader_changes)


def _away(sums: Sums, by: str) -> int:
    return sums.fenced if by == BROKER else sums.offline


def _print_json(
    by: str, total: Sums, days: dict[str, Sums], ranked: list[tuple[str, Sums]]
) -> None:
    print_json(
        {
            "by": by,
            "total": _sums_json(total, by),
            "days": [{"day": day, **_sums_json(sums, by)} for day, sums in sorted(days.items())],
            "worst": [{"key": key, **_sums_json(sums, by)} for key, sums in ranked],
        }
    )


def _sums_json(sums: Sums, by: str) -> dict[str, Any]:
    if by == BROKER:
        return {"presentMs": sums.present, "fencedMs": sums.fenced}
    return {
        "presentMs": sums.present,
        "offlineMs": sums.offline,
        "underMinIsrMs": sums.under_min_isr,
        "leaderChanges": sums.leader_changes,
    }


def _print_tables(
    by: str,
    total: Sums,
    days: dict[str, Sums],
    ranked: list[tuple[str, Sums]],
    things: int,
) -> None:
    if not things:
        say(f"there was no {by} in that time")
        return
    show(_table("day", sorted(days.items()), by, total))
    if ranked:
        say("")
        show(_table(f"worst of {things}", ranked, by, None))


def _table(heading: str, rows: list[tuple[str, Sums]], by: str, total: Sums | None) -> Any:
    away = ["fenced"] if by == BROKER else ["offline", "under min ISR", "leader changes"]
    longest = max((_away(sums, by) for _, sums in rows), default=0)
    drawn = [(name, *_cells(sums, by), _bar(_away(sums, by), longest)) for name, sums in rows]
    if total is not None:
        drawn.append(("in all", *_cells(total, by), Text()))
    return table([heading, "present", *away, "available", ""], drawn)


def _cells(sums: Sums, by: str) -> tuple[Any, ...]:
    share = 1 - _away(sums, by) / sums.present if sums.present else 1.0
    available = f"{share:.4%}"
    if by == BROKER:
        return (duration(sums.present), duration(sums.fenced), available)
    return (
        duration(sums.present),
        duration(sums.offline),
        duration(sums.under_min_isr),
        sums.leader_changes,
        available,
    )


def _bar(value: int, longest: int) -> Text:
    length = -(-value * _BAR // longest) if longest else 0
    return Text("█" * length, style="red")


def duration(ms: int) -> str:
    """Return a length of time as people read it."""
    seconds, rest = divmod(ms, 1_000)
    if seconds < 60:
        return f"{seconds}.{rest:03d} s" if rest else f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{days}d {clock}" if days else clock
