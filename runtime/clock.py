"""The interface of a clock: a monotonic reading, a wall reading, and timers.

Rule: nothing outside `runtime` reads a clock or sleeps. A core is handed a `Clock` by its
constructor, so the same core also runs on a virtual clock, where a year takes seconds.

Monotonic seconds decide (time-outs, sessions, elections); wall milliseconds are only ever
written down (a batch's timestamp). A jump of the wall clock therefore changes no decision.
"""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Make sure the callback is not called. Harmless when it already was."""


class Clock(Protocol):
    """The time of one process, and its timers."""

    def monotonic(self) -> float:
        """Return seconds since some moment; never goes back within a process."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC; may jump."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call back once, `delay_s` seconds from now (at once when it is zero or less)."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back once, after what is already due; callbacks keep their order."""


class ThreadsafeClock(Clock, Protocol):
    """A clock that other threads may hand callbacks to; only code in `runtime` has threads."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """As `call_soon`, from any thread. Raises RuntimeError when the loop is closed."""
