"""The interface of a clock: a monotonic reading, a wall reading, and timers.

Rule: nothing outside `runtime` reads a clock or sleeps. A core gets a `Clock` by its constructor.
So the same core also runs on a simulated clock, where a year takes seconds.

Decisions use monotonic seconds (time-outs, sessions, elections). Wall milliseconds are only written
down (a batch's timestamp). So a jump of the wall clock changes no decision.
"""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that will be called later."""

    def cancel(self) -> None:
        """Don't call the callback. If it was called already, do nothing."""


class Clock(Protocol):
    """The time of one process, and its timers."""

    def monotonic(self) -> float:
        """Return seconds since some moment. Within a process they never go back."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC. They may jump."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call back once, `delay_s` seconds from now; as `call_soon` if that is 0 or less."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back once, after the callbacks that are due already, in order of the calls."""


class ThreadsafeClock(Clock, Protocol):
    """A clock to which other threads may give callbacks. Only `runtime` has threads."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """As `call_soon`, from any thread. Raises RuntimeError if the loop is closed."""
