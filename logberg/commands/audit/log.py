"""`logberg audit log`: the records that match a search, with their fields."""

from pathlib import Path

import click

from audit.places.replicas import one_replica
from audit.questions.people_sought import PeopleSought
from audit.questions.search import Filter, first_offset, last_offset, search, type_name
from audit.questions.search import request_id as read_request_id
from audit.reading.settling import ABORTED, OPEN, SETTLED
from logberg.cli.output import output_option
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.opening_option import cluster_key_option, opener_of
from logberg.commands.audit.record_output import RecordPrinter
from logberg.commands.audit.search_options import (
    moment_options,
    show_secrets_option,
    who_and_what_options,
)


@click.command("log")
@where_argument
@moment_options
@who_and_what_options
@click.option(
    "--type",
    "types",
    multiple=True,
    help="The type of record: topic, partition_change. Repeatable.",
)
@click.option("--request-id", help="The id of the request, from its reply or its error.")
@click.option(
    "--outcome",
    multiple=True,
    type=click.Choice([SETTLED, ABORTED, OPEN]),
    help="Whether the record counts (settled), or its transaction was aborted or is open.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many records.")
@show_secrets_option
@cluster_key_option
@keep_going_option
@output_option
def command(
    where: str,
    from_: str | None,
    to: str | None,
    principal: str | None,
    operation: str | None,
    resource: tuple[str, ...],
    types: tuple[str, ...],
    request_id: str | None,
    outcome: tuple[str, ...],
    limit: int | None,
    show_secrets: bool,
    cluster_key: Path | None,
    keep_going: bool,
    output: str,
) -> None:
    """Print records with who, when and why, if they match all the filters.

    Records of aborted and open transactions don't count; the output marks them. With --output json
    each record is one document on one line.
    """
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        opener = opener_of(cluster_key, replica)
        wanted = Filter(
            principal=principal,
            operation=operation,
            resources=resource,
            types=tuple(type_name(each) for each in types),
            request_id=None if request_id is None else read_request_id(request_id),
            outcomes=outcome,
        )
        wanted = PeopleSought(opener).with_pseudonyms(wanted)
        reader = replica.reader()
        start, end = first_offset(reader, from_), last_offset(reader, to)
        printer = RecordPrinter(show_secrets=show_secrets, as_json=output == "json", opener=opener)
        with progress("reading the log") as on_progress:
            for found in search(replica, reader, wanted, start, end, on_progress, damage):
                printer.show(found)
                if printer.shown == limit:
                    break
        print_notes(reader.notes)
    fail_for(damage)
