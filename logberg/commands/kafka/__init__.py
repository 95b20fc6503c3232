"""`logberg kafka`: Apache Kafka's own brokers and tools on this machine, with our controllers."""

import click

from logberg.cli.lazy_group import LazyGroup

_HELP_LINES = {
    "up": "Start controllers and Kafka's own brokers on this machine, and show them.",
    "tool": "Run one of Kafka's own command line tools on a cluster of `kafka up`.",
    "metadata-log": "Write a log as Kafka keeps it, for Kafka's own tools and controllers.",
}


@click.group(
    "kafka",
    cls=LazyGroup,
    package="logberg.commands.kafka",
    help_lines=_HELP_LINES,
)
def command() -> None:
    """Run Apache Kafka's own brokers and tools with our controllers.

    Maven fetches Kafka's jars once for each version. Java is that of JAVA_HOME, of PATH, or the
    one that `pip install 'logberg[audit]'` brings.
    """
