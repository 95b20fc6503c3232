"""`logberg audit holders`: who held a lock, led an election or was a member, and when."""

from typing import Any

import click

from audit.places.replicas import one_replica
from audit.questions.holders import GrantPeriod, held_grants
from audit.questions.search import first_offset, last_offset
from audit.reading.dump import utc
from audit.reading.feed import Feed, Question
from logberg.cli.output import output_option, print_line, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.search_options import moment_options
from metadata.uuids import uuid_text


@click.command("holders")
@where_argument
@click.argument("resource", default="")
@moment_options
@keep_going_option
@output_option
def command(
    where: str, resource: str, from_: str | None, to: str | None, keep_going: bool, output: str
) -> None:
    """Show who held RESOURCE, from when to when, with which fencing token, and what ended it.

    RESOURCE is lock:NAME, election:NAME or group:NAME; without one, all are shown. What ended
    before --from is left out. With --output json each grant is one document on one line.
    """
    notes: list[str] = []
    grants = 0
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        start, end = first_offset(reader, from_), last_offset(reader, to)
        with progress("reading the log") as on_progress:
            feed = Feed(Question([replica], end, on_progress, notes, damage))
            beginning = feed.beginning()
            for grant in held_grants(resource, feed.moments(beginning), beginning):
                if grant.until_offset is None or grant.until_offset >= start:
                    grants += 1
                    _show(grant, as_json=output == "json")
    print_notes(notes)
    if not grants:
        say(f"nobody held {resource or 'anything'} there", err=True)
    fail_for(damage)


def _show(grant: GrantPeriod, *, as_json: bool) -> None:
    if as_json:
        print_line(_as_json(grant))
        return
    until = "held" if grant.until_ms is None else f"until {utc(grant.until_ms)}"
    client = f" ({grant.client_name})" if grant.client_name else ""
    ended = f": {grant.ended_by}" if grant.ended_by else ""
    say(
        f"{grant.resource}  {grant.id} of {grant.owner or 'an unknown session'}{client}  "
        f"token {grant.token}  from {utc(grant.from_ms)} {until}{ended}"
    )


def _as_json(grant: GrantPeriod) -> dict[str, Any]:
    return {
        "resource": grant.resource,
        "id": grant.id,
        "owner": grant.owner,
        "clientName": grant.client_name,
        "sessionId": uuid_text(grant.session_id),
        "token": grant.token,
        "fromOffset": grant.from_offset,
        "from": utc(grant.from_ms),
        "untilOffset": grant.until_offset,
        "until": None if grant.until_ms is None else utc(grant.until_ms),
        "endedBy": grant.ended_by,
    }
