"""What the commands of `quorate audit` share: WHERE, failures with a sentence, progress.

Rule: whatever a log, a checkpoint, a moment or a name can be wrong in ends with exit code 1 and its
sentence; results are on stdout, notes and progress on stderr.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from audit.moments import MomentError
from audit.places import NoLogError
from audit.search import SearchError
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError
from metadata.image import ReplayError
from quorate.failure import Failure
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

OnProgress = Callable[[int, int], None]

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


@contextmanager
def progress(what: str) -> Iterator[OnProgress]:
    """Show a bar on stderr while the work takes long; nothing when it is not a terminal."""
    stderr = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
        disable=not stderr.is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=min(done, total), total=total)


def tell_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
