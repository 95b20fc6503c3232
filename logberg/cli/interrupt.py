"""Makes Ctrl-C a flag that a command checks, not an exception that may rise anywhere.

Rule: if KeyboardInterrupt rises in a finalizer, Python prints and discards it, and a command that
runs until Ctrl-C would run for ever. A second Ctrl-C does raise the exception.
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
