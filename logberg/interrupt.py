"""Ctrl-C as a word that is looked at, not an exception that may rise anywhere.

Rule: where KeyboardInterrupt rises in a finalizer, Python prints it and throws it away, and a
command that goes on until Ctrl-C would go on for ever. A second Ctrl-C does rise.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noting_interrupt() -> Iterator[Callable[[], None]]:
    """Yield what raises KeyboardInterrupt if Ctrl-C came: to be called between two steps."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    def look() -> None:
        if came:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)
