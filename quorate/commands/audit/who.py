"""`quorate audit who`: who changed a thing, newest first."""

from collections import Counter, deque
from typing import Any

import click

from audit.places import one_replica
from audit.search import Filter, Found, first_offset, last_offset, search
from audit.settling import SETTLED
from metadata.messages.records_json import record_type_name
from quorate.commands.audit.asking import failing, progress, tell_notes, where_argument
from quorate.commands.audit.telling import cause_json
from quorate.finding import output_option
from quorate.output import console, print_json, styled, table


@click.command("who")
@where_argument
@click.argument("thing")
@click.option("--from", "from_", metavar="MOMENT", help="An offset, a time, or -2h, -7d.")
@click.option("--to", metavar="MOMENT", help="Up to there, without it.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many."
)
@output_option
def command(
    where: str, thing: str, from_: str | None, to: str | None, limit: int, output: str
) -> None:
    """Say who touched THING, newest first: when, by which operation, why, via whom.

    THING is a resource or a pattern: topic:orders, partition:orders-3, 'config:topic:*',
    broker:3, user:alice, or only a name: orders.
    """
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        start, end = first_offset(reader, from_), last_offset(reader, to)
        newest: deque[list[Found]] = deque(maxlen=limit)
        batches = 0
        with progress("reading the log") as on_progress:
            wanted = Filter(resources=(thing,))
            for found in search(replica, reader, wanted, start, end, on_progress):
                if newest and newest[-1][0].logged.header is found.logged.header:
                    newest[-1].append(found)
                else:
                    newest.append([found])
                    batches += 1
        tell_notes(reader.notes)
    touches = [_touch(founds) for founds in reversed(newest)]
    if output == "json":
        print_json(touches)
        return
    _show(touches)
    if batches > limit:
        click.echo(f"and {batches - limit} older: --limit {batches} shows them", err=True)
    if not batches:
        click.echo(f"nobody touched {thing} there", err=True)


def _touch(founds: list[Found]) -> dict[str, Any]:
    """What one batch did to the thing."""
    header = founds[0].logged.header
    types = Counter(record_type_name(type(found.logged.record)) for found in founds)
    return {
        **cause_json(header),
        "offset": founds[0].logged.offset,
        "outcomes": sorted({found.logged.outcome for found in founds}),
        "records": dict(types),
        "subjects": list(dict.fromkeys(found.subjects[0] for found in founds)),
    }


def _show(touches: list[dict[str, Any]]) -> None:
    columns = ["offset", "time", "who", "via", "operation", "reason", "request", "what", "outcome"]
    rows = [
        (
            touch["offset"],
            touch["time"],
            touch.get("onBehalfOf") or touch.get("principal", "-"),
            touch.get("principal", "-") if "onBehalfOf" in touch else "",
            touch.get("operation", "-"),
            touch.get("reason", ""),
            touch.get("requestId", ""),
            _what(touch["subjects"], touch["records"]),
            "" if touch["outcomes"] == [SETTLED] else styled(touch["outcomes"][0]),
        )
        for touch in touches
    ]
    if rows:
        console().print(table(columns, rows))


def _what(subjects: list[str], records: dict[str, int]) -> str:
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    kinds = ", ".join(
        f"{f'{count} ' if count > 1 else ''}{name.removesuffix('_RECORD').lower()}"
        for name, count in records.items()
    )
    return f"{subjects[0]}{more}: {kinds}"
