"""Limits how much of one pass of the loop the connections of a listener take together.

Rule: each request is short, but many connections with many requests may be ready at once. When the
share of a pass is spent, the others wait for the next passes, in turn.
"""

from collections import deque
from collections.abc import Callable

from runtime.clock import Clock
from runtime.loop.slices import LoopShare


class SharedPass:
    """The share of all connections of one listener."""

    def __init__(self, clock: Clock) -> None:
        self._share = LoopShare(clock, self._next)
        self._waiting: deque[Callable[[], None]] = deque()

    def spent(self) -> bool:
        """Tell whether the share of this pass is used up. Then `wait`."""
        return self._share.spent()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once in a later pass, after those that wait already."""
        self._waiting.append(go_on)

    def _next(self) -> None:
        while self._waiting and not self._share.spent():
            self._waiting.popleft()()
