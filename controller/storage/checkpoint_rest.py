"""The time without a slice of a checkpoint while the cluster changes its leader.

Rule: an election and the first commit need some ten passes of the loop on two nodes. A slice of a
checkpoint in each of them would double the time without a leader, or worse. But the journal can be
cut only when a checkpoint is written, so all rests of one checkpoint together have an end. Leaders
may change without end, for example over a link that breaks again and again.
"""

from collections.abc import Callable

from runtime.clock import Clock, Timer

REST_S = 1.0
"""A rest, from the last change on."""
ALL_RESTS_S = 10.0
"""After so much time one checkpoint has no further rest."""


class CheckpointRest:
    """Whether a checkpoint rests, and how long one may still rest."""

    def __init__(
        self, clock: Clock, waits: Callable[[], bool], on_rested: Callable[[], None]
    ) -> None:
        """`waits` tells whether a checkpoint is due or half written: only then a rest counts."""
        self._clock = clock
        self._waits = waits
        self._on_rested = on_rested
        self._left_s = ALL_RESTS_S
        self._timer: Timer | None = None
        self._counted_to = 0.0

    @property
    def running(self) -> bool:
        """No checkpoint is begun or packed now."""
        return self._timer is not None

    def begin(self) -> None:
        """Begin a rest, or prolong the one that runs."""
        now = self._clock.monotonic()
        self._count(now)
        if self._left_s <= 0:
            return
        self.stop()
        self._counted_to = now
        self._timer = self._clock.call_later(min(REST_S, self._left_s), self._rested)

    def stop(self) -> None:
        """End the rest, and tell nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def checkpoint_ended(self) -> None:
        """The next checkpoint may rest for the whole time again."""
        self._left_s = ALL_RESTS_S

    def _count(self, now: float) -> None:
        if self._timer is not None:
            if self._waits():
                self._left_s -= now - self._counted_to
            self._counted_to = now

    def _rested(self) -> None:
        self._count(self._clock.monotonic())
        self._timer = None
        self._on_rested()
