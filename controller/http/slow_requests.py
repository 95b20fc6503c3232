"""Logs requests that took long, so that a slow operation has a name, a caller and a time.

Rule: requests that may be held for news are left out: their times say nothing about the node. At
most ten lines a second are written, and the next line counts those that were left out. Otherwise a
node that is slow because it has too much to do would also have to write a line for each request.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from runtime.http.requests import Request

HELD: Final = frozenset({"metadata_fetch", "read_log", "watch_resource", "watch_coordination"})
"""Operations that wait for news."""
LINES_PER_S: Final = 10


class SlowRequests:
    """Sees each answered request."""

    def __init__(self, slow_s: float, log: FilteringBoundLogger) -> None:
        """A request that took more than `slow_s` is logged; 0: none is."""
        self._slow_s = slow_s
        self._log = log
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def answered(
        self,
        operation: str,
        request: Request,
        status: int,
        arrived: float,
        now: float,
        waiting: int,
    ) -> None:
        """`arrived` and `now`: monotonic seconds. `waiting`: decisions that wait for their turn."""
        seconds = now - arrived
        if not 0 < self._slow_s < seconds or operation in HELD:
            return
        if int(now) != self._second:
            self._second, self._lines = int(now), 0
        if self._lines >= LINES_PER_S:
            self._left_out += 1
            return
        self._lines += 1
        self._log.warning(
            "request_slow",
            operation=operation,
            status=status,
            seconds=round(seconds, 3),
            principal=request.caller.principal,
            request_id=request.headers.get("x-logberg-request-id"),
            waiting_decisions=waiting,
            left_out=self._left_out,
        )
        self._left_out = 0
