"""What the commands of `logberg audit` share: WHERE, failures with a sentence, notes.

Rule: whatever a log, a checkpoint, a moment or a name can be wrong in ends with exit code 1 and its
sentence; results are on stdout, notes on stderr.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from audit.places.replicas import NoLogError
from audit.questions.search import SearchError
from audit.reading.moments import MomentError
from ledger.errors import LedgerError
from logberg.failure import Failure
from logberg.output import note
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
    "--keep-going", is_flag=True, help="Tell what can be read where the log is damaged."
)


def fail_for(damage: list[str] | None) -> None:
    """End with exit code 1 if reading ended at damage; the answer was printed."""
    if damage:
        raise Failure(f"{damage[0]}. Told is what stands before it.")


@contextmanager
def failing() -> Iterator[None]:
    """Turn what is expected to go wrong into a Failure."""
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
