"""`logberg backup list`."""

from pathlib import Path

import click

from audit.places.remote import is_url
from audit.reading.dump import utc
from logberg.backups.places import place_of
from logberg.backups.store import list_backups
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, show, table
from logberg.commands.backup.shared import failing, in_json


@click.command("list")
@click.argument("where")
@output_option
def command(where: str, output: str) -> None:
    """List the backups in a place, the oldest first. It reads their headers only."""
    if not is_url(where) and not Path(where).is_dir():
        raise Failure(f"{where} is not there, or is no folder: name the place of the backups")
    with failing():
        found = list_backups(place_of(where))
    if output == "json":
        print_json(
            [
                {"name": each.name, "bytes": each.size, "problem": each.problem}
                if each.header is None
                else in_json(each.name, each.size, each.header)
                for each in found
            ]
        )
        return
    rows = [
        (each.name, "-", "-", "-", "-", each.size, each.problem)
        if each.header is None
        else (
            each.name,
            each.header.cluster_id,
            utc(each.header.made_at_ms),
            f"{each.header.start.log_end} to {each.header.end.log_end}",
            utc(each.header.end.timestamp_ms),
            each.size,
            "",
        )
        for each in found
    ]
    columns = ["backup", "cluster", "made", "offsets", "last change", "bytes", "problem"]
    show(table(columns, rows))
