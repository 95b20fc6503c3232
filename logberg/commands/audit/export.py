"""`logberg audit export`: changes and refused attempts as OCSF or CEF, for other systems."""

from typing import Final

import click

from audit.export.cef import cef_line
from audit.export.events import exported
from audit.export.ocsf import ocsf_event
from audit.places.replicas import one_replica
from audit.questions.search import Filter, first_offset, last_offset, search
from audit.reading.settling import SETTLED
from logberg.cli.output import print_line, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.search_options import moment_options
from logberg.version import VERSION

_OCSF: Final = "ocsf"
_CEF: Final = "cef"


@click.command("export")
@where_argument
@click.option(
    "--format",
    "format_",
    type=click.Choice([_OCSF, _CEF]),
    required=True,
    help="ocsf: a JSON object on each line (OCSF 1.8). cef: a line of the Common Event Format.",
)
@click.option(
    "--what",
    type=click.Choice(["all", "changes", "attempts"]),
    default="all",
    show_default=True,
    help="Changes that count, recorded attempts, or both.",
)
@moment_options
@keep_going_option
def command(
    where: str,
    format_: str,
    what: str,
    from_: str | None,
    to: str | None,
    keep_going: bool,
) -> None:
    """Write the log's changes and attempts as events of other systems, one on each line.

    A batch of changes is one event. A record of attempts is one event with its count.
    """
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        reader = replica.reader()
        start, end = first_offset(reader, from_), last_offset(reader, to)
        settled = Filter(outcomes=(SETTLED,))
        with progress("reading the log") as on_progress:
            found = search(replica, reader, settled, start, end, on_progress, damage)
            events = exported(
                found,
                reader.cluster_id,
                changes=what in ("all", "changes"),
                attempts=what in ("all", "attempts"),
            )
            for event in events:
                if format_ == _CEF:
                    say(cef_line(event, VERSION))
                else:
                    print_line(ocsf_event(event, VERSION))
        print_notes(reader.notes)
    fail_for(damage)
