"""`logberg audit`: what the log says, for people who must explain it.

Rule: `LazyGroup` imports a command when somebody calls it. So `audit state` does not import a
plotting library, and only `audit run --engine spark` needs Spark.
"""

import click

from logberg.cli.lazy_group import LazyGroup

_HELP_LINES = {
    "state": "What the cluster was, at an offset or a time.",
    "log": "The records of the log, filtered by time, principal, operation, resource, request.",
    "who": "Who changed a thing, when and why.",
    "history": "Every change of one topic, partition, broker, config or ACL, with its cause.",
    "diff": "What changed between two offsets, times, snapshots or folders.",
    "availability": "How long partitions and brokers were unavailable.",
    "verify": "Frames, checksums, chain, offsets, epochs and snapshots of one or more logs.",
    "compare": "Compare several controllers' logs; show the first offset that differs.",
    "follow": "The log as it grows.",
    "run": "A job of the audit, with the embedded engine or with Spark.",
    "report": "One HTML page for people.",
    "generate": "A history of a made-up cluster, to try the audit with.",
}


@click.group(
    "audit",
    cls=LazyGroup,
    package="logberg.commands.audit",
    help_lines=_HELP_LINES,
)
def command() -> None:
    """Ask the log: the state at any moment, who changed what, proof that nobody tampered.

    WHERE is a controller's folder, that of `logberg up`, a copy, an archive (.tar, .tar.gz, .zip)
    or a URL of object storage (s3://…). The commands change nothing in it, and its node may run.
    """
