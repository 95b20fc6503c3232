"""`logberg audit who`: who changed a thing, newest first."""

from pathlib import Path
from typing import Any

import click

from audit.index.of_things import indexed_records, indexed_touches
from audit.places.replicas import one_replica
from audit.questions.attempts import (
    NewestAttempts,
    attempts_json,
    attempts_line,
    attempts_on,
    newest_attempts,
)
from audit.questions.people_sought import PeopleSought
from audit.questions.search import Filter, first_offset, last_offset, search
from audit.questions.touches import Touch, touches
from audit.reading.dump import utc
from audit.reading.opening import shown_header
from audit.reading.settling import SETTLED
from logberg.cli.output import output_option, print_json, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.index_options import index_option, indexed
from logberg.commands.audit.opening_option import cluster_key_option, opener_of
from logberg.commands.audit.record_output import cause, cause_json, styled
from logberg.commands.audit.search_options import moment_options
from metadata.person_opener import PersonOpener


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
@click.option(
    "--refused/--no-refused",
    default=True,
    show_default=True,
    help="Also show who tried to change it, or to see it, and was refused.",
)
@index_option
@cluster_key_option
@keep_going_option
@output_option
def command(
    where: str,
    thing: str,
    from_: str | None,
    to: str | None,
    limit: int,
    refused: bool,
    index: Path | None,
    cluster_key: Path | None,
    keep_going: bool,
    output: str,
) -> None:
    """Show who changed THING, newest first: when, by which operation, why, and through whom.

    Behind the changes stand the refused attempts on it.

    THING is a resource or a pattern: topic:orders, partition:orders-3, 'config:topic:*',
    broker:3, user:alice, or only a name: orders. With --cluster-key it may be the name of a person
    who has a pseudonym in the log.
    """
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader, opener = replica.reader(), opener_of(cluster_key, replica)
        start, end = first_offset(reader, from_), last_offset(reader, to)
        things = PeopleSought(opener).patterns(thing)
        wanted, tried = Filter(resources=things), attempts_on(*things)
        attempts = NewestAttempts([], 0, 0)
        with progress("reading the log") as on_progress:
            if index is not None:
                log = indexed(index, replica, reader, on_progress, damage)
                found = indexed_touches(log, wanted, start, end, limit)
                if refused:
                    attempts = newest_attempts(indexed_records(log, tried, start, end), limit)
            else:
                every = search(replica, reader, wanted, start, end, on_progress, damage)
                found = touches(every, limit)
                if refused:
                    every = search(replica, reader, tried, start, end, on_progress, damage)
                    attempts = newest_attempts(every, limit)
        print_notes(reader.notes)
    tries = [each._replace(record=opener.attempts(each.record)) for each in attempts.newest]
    if output == "json":
        print_json(
            [
                *(_as_json(touch, opener) for touch in found.newest),
                *(attempts_json(each, opener) for each in tries),
            ]
        )
    else:
        for touch in found.newest:
            _show(touch._replace(header=shown_header(opener, touch.header)))
        if tries:
            say("refused attempts:")
        for each in tries:
            say(f"  {attempts_line(each, opener)}")
    if attempts.records > limit:
        older = attempts.records - len(attempts.newest)
        say(f"{attempts.attempts} attempts in all, in {older} older records, too", err=True)
    if found.total > limit:
        say(f"and {found.total - limit} older: --limit {found.total} shows them", err=True)
    if not found.total:
        say(f"nobody changed {thing} there", err=True)
    fail_for(damage)


def _as_json(touch: Touch, opener: PersonOpener) -> dict[str, Any]:
    return {
        **cause_json(touch.header, opener),
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
