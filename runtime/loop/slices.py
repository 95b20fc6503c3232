"""Runs long work in short slices, so that it never blocks the loop for long.

Rule: work that can take longer than a few milliseconds is a generator that yields often; it
runs in slices, and other due work runs between them. The state that the generator reads must be
immutable, or its owner must accept that it changes between slices.
"""

from collections.abc import Callable, Generator

from runtime.clock import Clock

SLICE_S = 0.005


class LoopShare:
    """How much of one pass of the loop a kind of work may take, when it comes in crowds.

    Each piece is short, but a thousand requests that arrive together are not. Ask `spent` before
    each piece; when it says so, stop: `on_next` is called in a later pass.
    """

    def __init__(self, clock: Clock, on_next: Callable[[], None], share_s: float = SLICE_S) -> None:
        self._clock = clock
        self._on_next = on_next
        self._share_s = share_s
        self._until: float | None = None
        self._stopped = False

    def spent(self) -> bool:
        """Tell whether this pass has had its share of it."""
        now = self._clock.monotonic()
        if self._until is None:
            self._until = now + self._share_s
            self._clock.call_soon(self._next_pass)
        elif now >= self._until:
            self._stopped = True
        return self._stopped

    def _next_pass(self) -> None:
        self._until = None
        if self._stopped:
            self._stopped = False
            self._on_next()


def run_in_slices(
    clock: Clock, work: Generator[None, None, None], on_done: Callable[[], None]
) -> Callable[[], None]:
    """Step `work` to its end, at most `SLICE_S` at a time, then call `on_done`.

    Returns a function that cancels. An exception of `work` goes to the loop.
    """
    slices = SlicedWork(clock, work, on_done)
    clock.call_soon(slices.step)
    return slices.cancel


class SlicedWork:
    """One piece of long work, between its slices."""

    def __init__(
        self, clock: Clock, work: Generator[None, None, None], on_done: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._work = work
        self._on_done = on_done
        self._stepping = False
        self._cancelled = False

    @property
    def name(self) -> str:
        """What the work is, for diagnosis."""
        return str(getattr(self._work, "__qualname__", self._work))

    def cancel(self) -> None:
        """Step no more. Work that cancels itself is closed once it has yielded."""
        self._cancelled = True
        if not self._stepping:
            self._work.close()

    def step(self) -> None:
        """Run for one slice."""
        if self._cancelled:
            return
        self._stepping = True
        try:
            finished = self._run_slice()
        finally:
            self._stepping = False
        self._go_on(finished=finished)

    def _go_on(self, *, finished: bool) -> None:
        """Another slice, or the end; the work may have cancelled itself."""
        if self._cancelled:
            self._work.close()
        elif finished:
            self._on_done()
        else:
            self._clock.call_soon(self.step)

    def _run_slice(self) -> bool:
        """Tell whether the work is done."""
        until = self._clock.monotonic() + SLICE_S
        return not any(self._cancelled or self._clock.monotonic() >= until for _ in self._work)
