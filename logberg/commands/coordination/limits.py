"""`logberg coordination limits`."""

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import facts, print_json, show


@click.command("limits")
@cluster_options
def command(*, cluster: ClusterConnection, output: str) -> None:
    """Show what the controllers allow coordination, and how much of it is used."""
    reply = cluster.ask(lambda client: client.coordination_limits())
    if output == "json":
        print_json(reply)
        return
    show(
        facts(
            [
                ("sessions", f"{reply.sessions} of {reply.sessions_max}"),
                ("entries", f"{reply.entries} of {reply.entries_max}"),
                ("keys", f"{reply.keys} of {reply.keys_max}"),
                ("bytes", f"{reply.bytes_used} of {reply.bytes_max}"),
                ("ttl of a session", f"{reply.ttl_ms_min} to {reply.ttl_ms_max} ms"),
                ("bytes of a key", reply.key_bytes_max),
                ("bytes of a value", reply.value_bytes_max),
                ("bytes of an entry's data", reply.data_bytes_max),
                ("bytes of a name", reply.name_bytes_max),
                ("operations of a commit", reply.commit_operations_max),
                ("bytes of a commit", reply.commit_bytes_max),
                ("scopes of a watch", reply.watch_scopes_max),
                ("as of offset", f"{reply.offset} (epoch {reply.epoch})"),
            ]
        )
    )
