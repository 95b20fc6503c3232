"""`logberg audit who`: who changed a thing, newest first."""

from collections import Counter, deque
from typing import Any, NamedTuple

import click

from audit.places.replicas import one_replica
from audit.questions.search import Filter, FoundRecord, first_offset, last_offset, search
from audit.reading.dump import utc
from audit.reading.settling import SETTLED
from ledger.batch import BatchHeader
from logberg.cli.output import output_option, print_json, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.record_output import cause, cause_json, styled
from logberg.commands.audit.search_options import moment_options
from metadata.messages.records_json import record_type_name


@click.command("who")
@where_argument
@click.argument("thing")
@moment_options
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many changes to show.",
)
@keep_going_option
@output_option
def command(
    where: str,
    thing: str,
    from_: str | None,
    to: str | None,
    limit: int,
    keep_going: bool,
    output: str,
) -> None:
    """Show who changed THING, newest first: when, by which operation, why, and through whom.

    THING is a resource or a pattern: topic:orders, partition:orders-3, 'config:topic:*',
    broker:3, user:alice, or only a name: orders.
    """
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        start, end = first_offset(reader, from_), last_offset(reader, to)
        newest: deque[list[FoundRecord]] = deque(maxlen=limit)
        batches = 0
        with progress("reading the log") as on_progress:
            wanted = Filter(resources=(thing,))
            for found in search(replica, reader, wanted, start, end, on_progress, damage):
                if newest and newest[-1][0].logged.header is found.logged.header:
                    newest[-1].append(found)
                else:
                    newest.append([found])
                    batches += 1
        print_notes(reader.notes)
    touches = [_touch(founds) for founds in reversed(newest)]
    if output == "json":
        print_json([_as_json(touch) for touch in touches])
    else:
        for touch in touches:
            _show(touch)
    if batches > limit:
        say(f"and {batches - limit} older: --limit {batches} shows them", err=True)
    if not batches:
        say(f"nobody changed {thing} there", err=True)
    fail_for(damage)


class Touch(NamedTuple):
    """What one batch did to the thing."""

    header: BatchHeader
    offset: int
    outcomes: list[str]
    records: dict[str, int]
    """The number of records of each type."""
    subjects: list[str]


def _touch(founds: list[FoundRecord]) -> Touch:
    types = Counter(record_type_name(type(found.logged.record)) for found in founds)
    return Touch(
        founds[0].logged.header,
        founds[0].logged.offset,
        sorted({found.logged.outcome for found in founds}),
        dict(types),
        list(dict.fromkeys(found.subjects[0] for found in founds)),
    )


def _as_json(touch: Touch) -> dict[str, Any]:
    return {
        **cause_json(touch.header),
        "offset": touch.offset,
        "outcomes": touch.outcomes,
        "records": touch.records,
        "subjects": touch.subjects,
    }


def _show(touch: Touch) -> None:
    say(f"{touch.offset}  {utc(touch.header.timestamp_ms)}  {cause(touch.header)}")
    more = f" and {len(touch.subjects) - 1} more" if len(touch.subjects) > 1 else ""
    kinds = ", ".join(
        f"{f'{count} ' if count > 1 else ''}{name.removesuffix('_RECORD').lower()}"
        for name, count in touch.records.items()
    )
    flags = [
        piece
        for each in touch.outcomes
        if each != SETTLED
        for piece in ("  ", styled(each.upper()))
    ]
    say(f"    {touch.subjects[0]}{more}: {kinds}", *flags)
