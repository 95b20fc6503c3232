"""`logberg audit`: what the log says, for people who must explain it.

Rule: `LazyGroup` imports a command when somebody calls it. So `audit state` does not import a
plotting library, and only `audit run --engine spark` needs Spark.
"""

import click

from logberg.cli.lazy_group import LazyGroup

_HELP_LINES = {
    "state": "Show the cluster's state at an offset or a time.",
    "findings": "Show what somebody should look at, the worst first.",
    "log": "Print records, filtered by time, principal, operation, resource or request.",
    "who": "Show who changed a thing, when and why.",
    "history": "Show every change of one topic, partition, broker, config or ACL, with its cause.",
    "holders": "Show who held a lock, led an election or was a member of a group, and when.",
    "diff": "Show what changed between two offsets, times, snapshots or folders.",
    "size": "Show how large a log is, what makes it grow, and when its disk is full.",
    "availability": "Show how long partitions and brokers were unavailable.",
    "verify": "Check frames, checksums, hash chain, offsets, epochs and checkpoints.",
    "compare": "Compare several controllers' logs; show the first offset that differs.",
    "follow": "Print changes as the log grows.",
    "run": "Run one job of the audit, with the embedded engine or with Spark.",
    "query": "Run a ready query, or any SQL, over the tables that the pipeline keeps.",
    "keys": "Show which keys sign heads, and check every signed head.",
    "prove": "Write a file that shows that a batch is in the log, for others to check.",
    "check-proof": "Check such a file, offline.",
    "check-heads": "Compare logs with signed heads that were kept elsewhere.",
    "export": "Write changes and refused attempts as OCSF or CEF, for other systems.",
    "report": "Make one HTML page for people.",
    "serve": "Serve a page to search the log, with its state at any moment.",
    "generate": "Write the history of a made-up cluster, to try the audit with.",
}


@click.group(
    "audit",
    cls=LazyGroup,
    package="logberg.commands.audit",
    help_lines=_HELP_LINES,
)
def command() -> None:
    """Query a log: its state at any moment, who changed what, and whether anybody tampered with it.

    WHERE is a controller's folder, the folder of `logberg up`, a copy, an archive (.tar, .tar.gz,
    .zip) or a URL of object storage (s3://…). The commands change nothing there, and the node may
    be running.
    """
