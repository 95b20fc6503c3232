"""Limits how much of one pass of the loop requests may take.

Rule: one request is short, but many in one pass would delay everything else. When the requests of
a pass have used its share, further requests wait for later passes, in order of arrival, the
hastened ones first. Each pass runs at least one request.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from runtime.loop import fair_loop

SHARE_S = 0.006
"""Processor time from the beginning of a pass, in seconds. After it no request is begun."""


class PassShare:
    """Runs callbacks, at once or in a later pass of the running loop."""

    def __init__(self, spent_s: Callable[[], float], share_s: float = SHARE_S) -> None:
        """`spent_s` returns the processor time of the present pass, in seconds."""
        self._spent_s = spent_s
        self._share_s = share_s
        self._first: deque[Callable[[], None]] = deque()
        self._others: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def call(self, run: Callable[[], None], *, first: bool = False) -> None:
        """Call `run`, now or in a later pass. It must not raise. `first`: it is hastened."""
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
    """Return a share of the running loop's passes.

    On a loop that is not a fair loop, every callback runs at once.
    """
    meter = fair_loop.meter()
    return PassShare((lambda: 0.0) if meter is None else meter.spent_s)
