"""Shows the progress of long work on stderr: a bar on a terminal, otherwise a line now and then.

Rule: short work prints nothing, and nothing goes to stdout. In the log of an unattended job the
lines show whether the job is slow or hangs.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from logberg.cli.output import say, shown

OnProgress = Callable[[int, int], None]
"""Called with the work done so far, and all of it."""
OnStep = Callable[[str, int, int], None]
"""The same, with the name of the step first."""
LINE_EVERY_S = 5.0


@contextmanager
def progress(what: str, line_every_s: float = LINE_EVERY_S) -> Iterator[OnProgress]:
    """Show the progress of one piece of counted work."""
    with progress_of_steps(what, line_every_s) as tell:
        yield lambda done, total: tell(what, done, total)


@contextmanager
def progress_of_steps(first: str, line_every_s: float = LINE_EVERY_S) -> Iterator[OnStep]:
    """Show the progress of counted work in named steps."""
    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        yield _Lines(line_every_s).tell
        return
    with _bar(stderr) as bar:
        task = bar.add_task(shown(first), total=None)
        yield lambda what, done, total: bar.update(
            task, description=shown(what), completed=min(done, total), total=total
        )


def _bar(stderr: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=stderr,
        transient=True,
    )


class _Lines:
    """Prints one line for every few seconds of work."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._next_at = time.monotonic() + every_s

    def tell(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next_at and total > 0:
            self._next_at = now + self._every_s
            say(f"{what}: {min(100 * done // total, 100)}%", err=True)


@contextmanager
def telling(progress_line: Callable[[], str], line_every_s: float = LINE_EVERY_S) -> Iterator[None]:
    """Print `progress_line()` now and then, from a thread, while work goes on that counts itself.

    An empty line is not printed: the work waits. Does nothing on a terminal, where Spark draws its
    own bar.
    """
    if Console(stderr=True).is_terminal:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        while not over.wait(line_every_s):
            if line := progress_line():
                say(f"{time.monotonic() - began:.0f} s: {line}", err=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
