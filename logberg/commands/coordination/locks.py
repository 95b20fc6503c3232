"""`logberg coordination locks`."""

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


@click.group("locks", cls=SuggestingGroup)
def command() -> None:
    """List locks, describe who holds one and who waits; break one."""


@command.command("list")
@reading_options
def list_locks(*, cluster: ClusterConnection, output: str) -> None:
    """List the locks that somebody holds."""
    reply = cluster.ask(lambda client: client.entries_of("lock"))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say("no locks are held")
    else:
        show(
            table(
                ["lock", "held by", "waiting"],
                [
                    (name, granted_ids(queue), sum(not each.granted for each in queue))
                    for name, queue in by_name(reply.entries)
                ],
            )
        )


@command.command("describe")
@click.argument("lock")
@reading_options
def describe(*, lock: str, cluster: ClusterConnection, output: str) -> None:
    """Describe who holds a lock, and who waits for it in which order."""
    reply = cluster.ask(lambda client: client.entries_of("lock", lock))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say(f"lock {lock} is free")
    else:
        show(queue_table(reply.entries, "holds", "waits"))


@command.command("break")
@click.argument("lock")
@change_options
def break_(*, lock: str, change: ChangeOptions, cluster: ClusterConnection, output: str) -> None:
    """Take a lock from its holder: the next one gets it. The holder's token counts no more."""
    reply = cluster.ask(lambda client: client.break_grant("lock", lock, **change.arguments()))
    done = f"the holder of lock {lock} has lost it (offset {reply.offset})"
    print_change(reply, output, done if reply.broken else f"nobody held lock {lock}")
