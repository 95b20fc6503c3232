"""`logberg cluster-id`."""

import click

from logberg.cli.output import say
from metadata.uuids import new_cluster_id
from runtime.randomness import from_system


@click.command("cluster-id")
def command() -> None:
    """Generate an id for a new cluster. Put the same id into every node's configuration."""
    say(new_cluster_id(lambda: from_system().getrandbits(122)))
