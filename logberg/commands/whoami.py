"""`logberg whoami`: as whom the controllers know the caller."""

import click

from logberg.cli.connection_options import ClusterConnection, reading_options
from logberg.cli.output import facts, print_json, show


@click.command("whoami")
@reading_options
def command(*, cluster: ClusterConnection, output: str) -> None:
    """Show as whom the controllers know you, and by which credentials.

    Where rights count, a caller who shows no credentials is refused.
    """
    reply = cluster.ask(lambda client: client.whoami())
    if output == "json":
        print_json(reply)
        return
    show(
        facts(
            [
                ("principal", reply.principal),
                *([("name", reply.name)] if reply.name else []),
                ("shown by", reply.method),
                ("address", reply.address or "-"),
                ("super user", "yes" if reply.super_user else "no"),
            ]
        )
    )
