"""Steps that follow one another, each when the one before has its reply.

A controller may reply within the call. So a step that simply called the next one would go deeper
with each, and a long list would end in a RecursionError. Here the next step begins after the
present one has returned. When many steps have taken a slice's time together, the others take turns
with the other long work of the loop.

Rule: what a step raises within `next`, `next` raises. What it raises in a later turn, `on_failed`
gets: an exception that reached the loop would end the process.
"""

from collections.abc import Callable

from runtime.clock import Clock
from runtime.loop.slices import SLICE_S, in_turn


class Turns:
    """Calls `step` once for each call of `next`, never within itself."""

    def __init__(
        self, clock: Clock, step: Callable[[], None], on_failed: Callable[[Exception], None]
    ) -> None:
        self._clock = clock
        self._step = step
        self._on_failed = on_failed
        self._due = 0
        self._running = False

    def next(self) -> None:
        """Let the next step begin: now, or as soon as the present one has returned."""
        self._due += 1
        if not self._running:
            self._go_on()

    def _go_on(self) -> None:
        self._running = True
        until = self._clock.monotonic() + SLICE_S
        waits = False
        try:
            while self._due and not waits:
                self._due -= 1
                self._step()
                waits = self._due > 0 and self._clock.monotonic() >= until
        finally:
            self._running = waits
        if waits:
            in_turn(self._clock, self._go_on_later, "steps of a Kafka request")

    def _go_on_later(self) -> None:
        try:
            self._go_on()
        except Exception as error:  # noqa: BLE001 - the client must get an answer
            self._on_failed(error)
