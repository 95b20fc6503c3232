"""Steps that follow one another, each when the one before has its reply.

A controller may reply within the call. So a step that simply called the next one would go deeper
with each, and a long list would end in a RecursionError. Here the next step begins after the
present one has returned.
"""

from collections.abc import Callable


class Turns:
    """Calls `step` once for each call of `next`, never within itself."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._due = 0
        self._running = False

    def next(self) -> None:
        """Let the next step begin: now, or as soon as the present one has returned."""
        self._due += 1
        if self._running:
            return
        self._running = True
        try:
            while self._due:
                self._due -= 1
                self._step()
        finally:
            self._running = False
