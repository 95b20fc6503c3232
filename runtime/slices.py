"""Long work in slices, so that the loop is never held for long.

Rule: work that can take longer than a few milliseconds is a generator that yields often; it
runs in slices and everything else that is due runs between them. The state it reads must be
immutable, or its owner must accept that it changes meanwhile.
"""

from collections.abc import Callable, Generator

from runtime.clock import Clock

SLICE_S = 0.005


def run_in_slices(
    clock: Clock, work: Generator[None, None, None], on_done: Callable[[], None]
) -> Callable[[], None]:
    """Step `work` to its end, at most `SLICE_S` at a time, then call `on_done`.

    Returns a function that cancels. An exception of `work` goes to the loop.
    """
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        # Work that cancels itself is closed by `step`, once it has yielded.
        if not work.gi_running:
            work.close()

    def step() -> None:
        if cancelled:
            return
        until = clock.monotonic() + SLICE_S
        for _ in work:
            if cancelled:
                work.close()
                return
            if clock.monotonic() >= until:
                clock.call_soon(step)
                return
        if not cancelled:
            on_done()

    clock.call_soon(step)
    return cancel
