"""`logberg audit history`: every change of one thing, with its cause."""

from pathlib import Path
from typing import Any

import click

from audit.index.of_things import indexed_moments
from audit.places.replicas import one_replica
from audit.questions.history import EntryDifference, HistoryEvent, history
from audit.questions.history_things import thing as read_thing
from audit.questions.people_sought import PeopleSought
from audit.questions.search import first_offset, last_offset
from audit.reading.dump import utc
from audit.reading.feed import Feed, Question
from audit.reading.opening import shown_header
from audit.reading.settling import Moment
from logberg.cli.output import output_option, print_line, say
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
from logberg.commands.audit.record_output import cause, cause_json, short, styled
from logberg.commands.audit.search_options import moment_options, show_secrets_option
from metadata.person_opener import PersonOpener

_FIELDS_A_LINE = 100
"""Characters. Longer lists get one line for each field."""
_NOTHING: tuple[Any, ...] = (None, "", [])
"""Values that are not shown for a new thing."""


@click.command("history")
@where_argument
@click.argument("thing")
@moment_options
@show_secrets_option
@index_option
@cluster_key_option
@keep_going_option
@output_option
def command(
    where: str,
    thing: str,
    from_: str | None,
    to: str | None,
    show_secrets: bool,
    index: Path | None,
    cluster_key: Path | None,
    keep_going: bool,
    output: str,
) -> None:
    """Show every change of THING: when, by whom and why, with the values before and after.

    THING is topic:orders, partition:orders-3, broker:2, controller:1,
    config:topic:orders:retention.ms, config:broker::min.insync.replicas, acl:ID, user:alice,
    token:ID, quota:user=alice, feature:metadata.version, quorum, lock:NAME, election:NAME,
    group:NAME, session:ID or key:NAME. If a topic was deleted and
    created again, the history covers both. With --cluster-key, the NAME of a user may be the name
    of a person who has a pseudonym in the log. Changes of aborted and open transactions don't
    count, and the history leaves them out. With --output json each change is one document on one
    line.
    """
    notes: list[str] = []
    events = 0
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader, opener = replica.reader(), opener_of(cluster_key, replica)
        told = read_thing(thing, PeopleSought(opener).also(thing))
        start, end = first_offset(reader, from_), last_offset(reader, to)
        with progress("reading the log") as on_progress:
            feed = Feed(Question([replica], end, on_progress, notes, damage))
            beginning = feed.beginning()
            if index is not None:
                log = indexed(index, replica, reader, on_progress, damage)
                moments = indexed_moments(log, told, beginning.offset, end)
            else:
                moments = feed.moments(beginning)
            for event in history(told, moments, beginning, show_secrets=show_secrets):
                if event.moment.records[-1].offset >= start:
                    events += 1
                    _show(event, opener, as_json=output == "json")
    print_notes(notes)
    if not events:
        say(f"nothing happened to {thing} there", err=True)
    fail_for(damage)


def _show(event: HistoryEvent, opener: PersonOpener, *, as_json: bool) -> None:
    if as_json:
        print_line(_as_json(event, opener))
        return
    first, *others = event.causes
    also = f"  (a transaction of {len(others) + 1} batches)" if others else ""
    who = cause(shown_header(opener, first))
    say(f"{event.records[0].offset}  {utc(event.moment.time_ms)}  {who}{also}")
    for difference in event.differences:
        _show_difference(difference)
    if not event.differences:
        say("    nothing changed: it already had these values")


def _show_difference(difference: EntryDifference) -> None:
    words = [
        f"{name} {short(after)}"
        if difference.kind == "created"
        else f"{name} {short(before)} → {short(after)}"
        for name, (before, after) in difference.fields.items()
        if difference.kind != "created" or after not in _NOTHING
    ]
    if difference.kind == "removed":
        words = [f"{name} was {short(before)}" for name, (before, _) in difference.fields.items()]
    heading = (f"    {difference.what} ", styled(difference.kind))
    line = ", ".join(words)
    if len(line) <= _FIELDS_A_LINE:
        say(*heading, f": {line}" if line else "")
        return
    say(*heading, ":")
    for word in words:
        say(f"        {word}")


def _as_json(event: HistoryEvent, opener: PersonOpener) -> dict[str, Any]:
    moment: Moment = event.moment
    return {
        "settledBase": moment.base,
        "time": utc(moment.time_ms),
        "offsets": [one.offset for one in event.records],
        "causes": [cause_json(header, opener) for header in event.causes],
        "differences": [
            {
                "what": difference.what,
                "kind": difference.kind,
                "before": {name: pair[0] for name, pair in difference.fields.items()},
                "after": {name: pair[1] for name, pair in difference.fields.items()},
            }
            for difference in event.differences
        ],
    }
