"""What the commands of `logberg audit` and `logberg log` share: WHERE, failures, notes.

Rule: an expected error of a log, a checkpoint, a moment or a name ends the command with exit code 1
and one sentence. Results go to stdout, notes to stderr.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from audit.places.replicas import NoLogError
from audit.questions.search import SearchError
from audit.reading.moments import MomentError
from ledger.errors import LedgerError
from logberg.cli.failure import Failure
from logberg.cli.output import note
from metadata.codec import RecordDecodeError
from metadata.image import ReplayError
from snapshots.errors import CheckpointError

EXPECTED: Final = (
    NoLogError,
    MomentError,
    SearchError,
    LedgerError,
    CheckpointError,
    RecordDecodeError,
    ReplayError,
    OSError,
)

where_argument = click.argument("where")


keep_going_option = click.option(
    "--keep-going", is_flag=True, help="If the log is damaged, show what comes before the damage."
)


def fail_for(damage: list[str] | None) -> None:
    """Exit with code 1 if reading ended at damage. The answer was printed before."""
    if damage:
        raise Failure(f"{damage[0]}. The output above covers everything before the damage.")


@contextmanager
def failing() -> Iterator[None]:
    """Turn expected errors into a Failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except EXPECTED as error:
        raise Failure(str(error)) from None


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for each in notes:
        note(each)
