"""`logberg backup`: copies of the cluster's log that prove themselves, and the way back from them.

Rule: a backup counts when it was read back. `logberg.backups` does the work; the commands here find
the cluster and the place, and say what happened.
"""

import click

from logberg.cli.lazy_group import LazyGroup

_HELP_LINES = {
    "create": "Make a backup of the log and its newest checkpoint, and read it back.",
    "list": "List the backups in a place.",
    "verify": "Verify every byte of a backup, and the chain of its log.",
    "restore": "Make the folders of controllers from a backup.",
    "drill": "Restore a backup into a temporary folder, and prove its state.",
}


@click.group("backup", cls=LazyGroup, package="logberg.commands.backup", help_lines=_HELP_LINES)
def command() -> None:
    """Make, list, verify and restore backups.

    WHERE is a folder, or s3://BUCKET/PATH. BACKUP is the file of a backup there.
    """
