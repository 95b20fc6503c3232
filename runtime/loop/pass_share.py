"""Limits how much of one pass of the loop requests may take.

Rule: one request is short, but many in one pass would hold up everything else. When a pass has used
its share, further requests wait for later passes, in order of arrival, the hastened ones first.
Each pass runs at least one.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from runtime.loop import fair_loop

SHARE_S = 0.006
"""Processor time of a pass, from its beginning, after which no more requests are taken up."""


class PassShare:
    """Runs callbacks, at once or in a later pass of the running loop."""

    def __init__(self, spent_s: Callable[[], float], share_s: float = SHARE_S) -> None:
        """`spent_s` tells the processor time of the present pass."""
        self._spent_s = spent_s
        self._share_s = share_s
        self._first: deque[Callable[[], None]] = deque()
        self._others: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def call(self, run: Callable[[], None], *, first: bool = False) -> None:
        """Call `run`, which raises nothing, when there is time for it."""
        waiting = self._first if first else self._others
        if not waiting and self._spent_s() < self._share_s:
            run()
            return
        waiting.append(run)
        if not self._scheduled:
            self._schedule()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._first) + len(self._others)

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._scheduled = False
        while self._first or self._others:
            (self._first or self._others).popleft()()
            if self._spent_s() >= self._share_s:
                break
        if self._first or self._others:
            self._schedule()


def of_running_loop() -> PassShare:
    """Return one that knows the running loop's passes; on another kind of loop nothing waits."""
    meter = fair_loop.meter()
    return PassShare((lambda: 0.0) if meter is None else meter.spent_s)
