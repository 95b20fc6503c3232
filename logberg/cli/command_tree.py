"""The commands of `logberg`, each in a module of `logberg.commands`.

Rule: `LazyGroup` imports a command when somebody calls it. So a controller imports no tables, and a
table imports no controller.
"""

import click

from logberg.cli.lazy_group import LazyGroup
from logberg.version import VERSION

_HELP_LINES = {
    "demo": "The whole story with real processes, in under a minute.",
    "up": "Start a cluster here and show it until Ctrl-C.",
    "status": "How the cluster is: controllers, brokers, offsets.",
    "quorum": "Who votes, who leads, who lags.",
    "brokers": "List, describe and unregister brokers.",
    "features": "Show, raise and lower feature levels.",
    "topics": "Create, list, describe and delete topics.",
    "partitions": "Elect leaders of partitions.",
    "acls": "Who may do what: add, remove, list and check.",
    "configs": "Show and change configs of topics, brokers, groups.",
    "log": "Dump, replay and verify a log on disk.",
    "audit": "Ask the log: who, what, when, why; and was it tampered.",
    "controller": "Run a controller in the foreground.",
    "broker": "Run a broker agent in the foreground.",
    "cluster-id": "Draw an id for a new cluster.",
    "completion": "Print what a shell needs to complete commands.",
}


@click.group(
    cls=LazyGroup,
    package="logberg.commands",
    help_lines=_HELP_LINES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, message="logberg %(version)s")
def cli() -> None:
    """Logberg: a self-managed metadata quorum in the style of KIP-500."""
