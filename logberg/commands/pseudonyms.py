"""`logberg pseudonyms`: who is behind a pseudonym in the log (ADR 0093)."""

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages


@click.group("pseudonyms", cls=SuggestingGroup)
def command() -> None:
    """Show which person a pseudonym stands for, as long as nobody has erased the person."""


@command.command("list")
@click.option("--name", help="Only the pseudonym of this name, such as alice@example.com.")
@click.option("--pseudonym", help="Only this one, such as p-mfrggzdfmztwq.")
@cluster_options
def list_pseudonyms(
    *, name: str | None, pseudonym: str | None, cluster: ClusterConnection, output: str
) -> None:
    """List pseudonyms and the names behind them.

    This needs the right to read the log. A controller opens the names while it answers, and shows -
    where it can't.
    """
    reply = cluster.ask(lambda client: client.pseudonyms(name=name, pseudonym=pseudonym))
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.people:
        say("no such person has a pseudonym" if name or pseudonym else "nobody has a pseudonym")
        return
    show(
        table(["pseudonym", "name"], [(each.pseudonym, each.name or "-") for each in reply.people])
    )
