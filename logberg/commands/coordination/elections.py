"""`logberg coordination elections`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.coordination.entry_tables import by_name, granted_ids, queue_table


@click.group("elections", cls=SuggestingGroup)
def command() -> None:
    """List elections, describe who leads and who waits; end a leadership."""


@command.command("list")
@reading_options
def list_elections(*, cluster: ClusterConnection, output: str) -> None:
    """List the elections that have candidates."""
    reply = cluster.ask(lambda client: client.entries_of("election"))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say("no elections")
    else:
        show(
            table(
                ["election", "leader", "candidates waiting"],
                [
                    (name, granted_ids(queue), sum(not each.granted for each in queue))
                    for name, queue in by_name(reply.entries)
                ],
            )
        )


@command.command("describe")
@click.argument("election")
@reading_options
def describe(*, election: str, cluster: ClusterConnection, output: str) -> None:
    """Describe who leads an election, and the candidates in the order in which they will lead."""
    reply = cluster.ask(lambda client: client.entries_of("election", election))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say(f"election {election} has no candidates")
    else:
        show(queue_table(reply.entries, "leads", "waits"))


@command.command("break")
@click.argument("election")
@change_options
def break_(
    *, election: str, change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """End the leadership: the next candidate leads. The leader's token counts no more."""
    reply = cluster.ask(
        lambda client: client.break_grant("election", election, **change.arguments())
    )
    done = f"the leader of election {election} is removed (offset {reply.offset})"
    print_change(reply, output, done if reply.broken else f"nobody led election {election}")
