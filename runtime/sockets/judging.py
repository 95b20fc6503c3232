"""Judges open connections again when what they rest on has changed, or may have expired.

Rule: a connection whose caller would be refused now ends within `LOOK_S + LEAST_S` and one pass
over all connections. A pass goes in steps, so that thousands of connections don't stop the loop.
What a connection rests on is immutable, so a change is another object. Passes begin `LEAST_S` apart
at least, however often it changes. Where something can expire, a pass begins every `EXPIRY_S`.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol

from runtime.clock import Clock, Timer

LOOK_S: Final = 0.5
LEAST_S: Final = 1.0
EXPIRY_S: Final = 2.0
STEP: Final = 32
"""Connections that are judged at once: opening a sealed credential takes some 20 µs."""


class Judged(Protocol):
    """What has connections."""

    def judging(self) -> Generator[None, None, int]:
        """End the connections of callers that would be refused now; return how many.

        Yields every few milliseconds.
        """


class ConnectionJudge:
    """Looks after the connections of one process."""

    def __init__(
        self,
        clock: Clock,
        rests_on: Callable[[], tuple[object, ...]],
        expires: Callable[[], bool],
        on_ended: Callable[[int], None],
    ) -> None:
        """`rests_on`: the objects that say who is let in. `expires`: whether any of it can expire.

        `on_ended` gets the number of connections that a pass ended, if there were any.
        """
        self._clock = clock
        self._rests_on = rests_on
        self._expires = expires
        self._on_ended = on_ended
        self._doors: tuple[Judged, ...] = ()
        self._seen: tuple[object, ...] = ()
        self._began_at = clock.monotonic()
        self._under_way = False
        self._timer: Timer | None = None

    def begin(self, doors: Sequence[Judged]) -> None:
        """Look after the connections of these from now on."""
        self._doors = tuple(doors)
        self._seen = self._rests_on()
        self._began_at = self._clock.monotonic()
        self._timer = self._clock.call_later(LOOK_S, self._look)

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = self._clock.call_later(LOOK_S, self._look)
        since = self._clock.monotonic() - self._began_at
        if self._under_way or since < LEAST_S:
            return
        now = self._rests_on()
        changed = len(now) != len(self._seen) or any(
            mine is not seen for mine, seen in zip(now, self._seen, strict=True)
        )
        if changed or (since >= EXPIRY_S and self._expires()):
            self._seen = now
            self._began_at = self._clock.monotonic()
            self._under_way = True
            self._go_on(self._pass())

    def _pass(self) -> Generator[None, None, None]:
        ended = 0
        for door in self._doors:
            ended += yield from door.judging()
        if ended:
            self._on_ended(ended)

    def _go_on(self, steps: Generator[None, None, None]) -> None:
        if self._timer is None:
            steps.close()
            return
        try:
            next(steps)
        except StopIteration:
            self._under_way = False
        except BaseException:
            self._under_way = False
            raise
        else:
            self._clock.call_later(0.0, lambda: self._go_on(steps))
