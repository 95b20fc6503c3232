"""Grants reads: decides when the image is new enough to answer from.

Reads are linearizable by default. The active controller answers them after a majority has confirmed
that it still leads, and many reads share one confirmation. Any node answers a read with `minOffset`
(read your writes) or `consistency=stale`, and says which offset it answers from.
"""

from collections import deque
from collections.abc import Callable

from controller.replica.offset_waiters import OffsetWaiters
from runtime.clock import Clock, Timer

OnRead = Callable[[bool], None]
"""True: read now. False: this node can't grant the read in time."""


class _Reader:
    __slots__ = ("due", "on_read")

    def __init__(self, on_read: OnRead, due: float) -> None:
        self.on_read: OnRead | None = on_read
        """None: it is answered."""
        self.due = due
        """Monotonic seconds at which it is answered with False."""

    def answer(self, ok: bool) -> None:
        on_read, self.on_read = self.on_read, None
        if on_read is not None:
            on_read(ok)


class ImageReads:
    """Grants reads."""

    def __init__(
        self,
        clock: Clock,
        read_index: Callable[[Callable[[bool], None]], None],
        delivered: Callable[[], int],
        waiters: OffsetWaiters,
        wait_s: float,
    ) -> None:
        """`delivered` returns the offset behind the last delivered batch, applied or not."""
        self._clock = clock
        self._read_index = read_index
        self._delivered = delivered
        self._waiters = waiters
        self._wait_s = wait_s
        self._next: list[_Reader] = []
        self._confirming = False
        self._unanswered: deque[_Reader] = deque()
        """In the order of arrival, which is the order of their `due`. Answered ones leave it when
        they come first."""
        self._timer: Timer | None = None
        """One for all of them."""

    def linearizable(self, on_read: OnRead) -> None:
        """Call back when the committed image is at least as new as this call."""
        reader = _Reader(on_read, self._clock.monotonic() + self._wait_s)
        self._forget_answered()
        self._unanswered.append(reader)
        if self._timer is None:
            self._timer = self._clock.call_later(self._wait_s, self._look_at_deadlines)
        self._next.append(reader)
        if not self._confirming:
            self._confirm()

    def at_least(self, offset: int, on_read: OnRead) -> None:
        """Call back when the image holds everything below `offset`."""
        self._waiters.wait(offset, self._wait_s, on_read)

    def _forget_answered(self) -> None:
        while self._unanswered and self._unanswered[0].on_read is None:
            self._unanswered.popleft()

    def _look_at_deadlines(self) -> None:
        """Answer the readers whose wait is over; set the timer for the next one."""
        self._timer = None
        now = self._clock.monotonic()
        self._forget_answered()
        while self._unanswered and self._unanswered[0].due <= now:
            self._unanswered.popleft().answer(False)
            self._forget_answered()
        if self._unanswered and self._timer is None:
            wait_s = self._unanswered[0].due - now
            self._timer = self._clock.call_later(wait_s, self._look_at_deadlines)

    def _confirm(self) -> None:
        """Ask a majority once for all waiting reads. Later reads are in the next round."""
        readers, self._next = self._next, []
        self._confirming = True

        def on_ready(leads: bool) -> None:
            self._confirming = False
            if leads:
                # What is delivered may not be applied yet: a long batch is replayed in slices.
                offset = self._delivered()
                for reader in readers:
                    self._waiters.wait(offset, self._wait_s, reader.answer)
            else:
                for reader in readers:
                    reader.answer(False)
            if self._next:
                self._confirm()

        self._read_index(on_ready)
