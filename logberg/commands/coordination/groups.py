"""`logberg coordination groups`."""

import click

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.coordination.entry_tables import by_name, granted_ids, queue_table


@click.group("groups", cls=SuggestingGroup)
def command() -> None:
    """List groups, and describe who is a member."""


@command.command("list")
@reading_options
def list_groups(*, cluster: ClusterConnection, output: str) -> None:
    """List the groups that have members."""
    reply = cluster.ask(lambda client: client.entries_of("group"))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say("no groups")
    else:
        show(
            table(
                ["group", "members"],
                [(name, granted_ids(members)) for name, members in by_name(reply.entries)],
            )
        )


@command.command("describe")
@click.argument("group")
@reading_options
def describe(*, group: str, cluster: ClusterConnection, output: str) -> None:
    """Describe the members of one group, in the order in which they joined."""
    reply = cluster.ask(lambda client: client.entries_of("group", group))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say(f"group {group} has no members")
    else:
        show(queue_table(reply.entries, "member", "waits"))
