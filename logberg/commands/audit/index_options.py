"""The option `--index` of commands that can answer by an index instead of a pass over the log.

Rule: an index is only built in a folder that the user names.
"""

from pathlib import Path
from typing import Final

import click

from audit.index.of_things import IndexedLog, indexed_log
from audit.places.replicas import Replica
from audit.reading.readable_log import ReadableLog
from ledger.errors import LedgerError
from logberg.cli.progress import OnProgress
from logberg.commands.audit.local_paths import LocalPath

index_option: Final = click.option(
    "--index",
    type=LocalPath(file_okay=False),
    metavar="FOLDER",
    envvar="LOGBERG_AUDIT_INDEX",
    show_envvar=True,
    help="Answer by an index in this folder. It is built at the first time and kept up.",
)


def indexed(
    folder: Path,
    replica: Replica,
    reader: ReadableLog,
    on_progress: OnProgress,
    damage: list[str] | None,
) -> IndexedLog:
    """Return a log with its index, as far as the log can be read.

    `damage` as in `audit.reading.feed.Question`. Raises LedgerError, NoLogError, OSError.
    """
    log = indexed_log(folder, replica, reader, on_progress)
    if log.damage:
        if damage is None:
            raise LedgerError(log.damage)
        damage.append(log.damage)
    return log
