"""Callers who wait for the answer to a change: each gets it once, or REQUEST_TIMED_OUT.

All wait equally long, so the order in which they came is the order in which their time ends. One
timer serves them all.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from metadata.errors import ErrorCode, LogbergError
from runtime.clock import Clock


class AnswerWait:
    """One caller."""

    __slots__ = ("_on_answer", "until")

    def __init__(self, on_answer: Callable[[Any], None], until: float) -> None:
        self._on_answer: Callable[[Any], None] | None = on_answer
        self.until = until
        """When its time ends, in monotonic seconds."""

    @property
    def answered(self) -> bool:
        """The caller has its answer, perhaps REQUEST_TIMED_OUT."""
        return self._on_answer is None

    def answer(self, outcome: Any) -> None:
        """Give the caller its answer, unless it has one."""
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(outcome)


class AnswerWaits:
    """All callers, the oldest first."""

    def __init__(self, clock: Clock, wait_s: float) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._waiting: deque[AnswerWait] = deque()
        self._timer_runs = False

    def __len__(self) -> int:
        return len(self._waiting)

    def of(self, on_answer: Callable[[Any], None]) -> AnswerWait:
        """Return the wait of a caller that came now. Its time runs once it is added."""
        return AnswerWait(on_answer, self._clock.monotonic() + self._wait_s)

    def add(self, wait: AnswerWait) -> None:
        """Answer with REQUEST_TIMED_OUT when its time ends."""
        waiting = self._waiting
        while waiting and waiting[0].answered:
            waiting.popleft()
        waiting.append(wait)
        if not self._timer_runs:
            self._begin_timer(self._wait_s)

    def _begin_timer(self, delay_s: float) -> None:
        self._timer_runs = True
        self._clock.call_later(delay_s, self._look)

    def _look(self) -> None:
        self._timer_runs = False
        waiting, now = self._waiting, self._clock.monotonic()
        while waiting and (waiting[0].answered or waiting[0].until <= now):
            waiting.popleft().answer(LogbergError(ErrorCode.REQUEST_TIMED_OUT))
        if waiting and not self._timer_runs:
            self._begin_timer(waiting[0].until - now)
