"""`logberg cluster-id`."""

import click

from logberg.cli.output import say
from metadata.uuids import uuid4_from, uuid_text
from runtime.randomness import from_system


@click.command("cluster-id")
def command() -> None:
    """Generate an id for a new cluster. Put the same id into every node's configuration."""
    say(uuid_text(uuid4_from(from_system().getrandbits(122))))
