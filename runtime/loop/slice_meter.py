"""Measures the processor time of each slice of work on the loop.

Rule: it always measures, and the figures are among the process's metrics. A slice is the work of
the loop between two polls of its sockets. Within a slice the loop starts no other work, reads no
heartbeat and answers no vote. The meter measures the processor time of the loop's thread, because
wall time on a busy machine also includes other processes; `stalls` measures wall time. A pause of
Python's garbage collector counts in its slice, and is also counted separately.

To measure a slice takes two readings of the thread's clock: about 1 µs, while a slice takes 30 µs
and more.
"""

import asyncio
import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Final

from runtime.loop.slices import SliceTurns
from runtime.metrics import Registry

BOUNDS_S: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.0125, 0.015),
    *(0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
    *(0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)
"""Upper bounds of the histogram, in seconds. They are close together around the promised limits."""
LONG_S: Final = 0.02
"""`name_long_callbacks` reports callbacks that take longer."""


class SliceMeter:
    """Counts slices of one loop; `began` and `ended` are called by the loop's selector."""

    def __init__(self, thread_time: Callable[[], float] = time.thread_time) -> None:
        """`thread_time` returns the calling thread's processor time in seconds."""
        self._thread_time = thread_time
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0
        self.worst_s = 0.0
        self.pauses = 0
        """The number of pauses of the garbage collector."""
        self.pauses_s = 0.0
        self.worst_pause_s = 0.0
        self._began: float | None = None
        self._pause_began = 0.0

    def began(self) -> None:
        """The loop has polled its sockets: a slice begins."""
        self._began = self._thread_time()

    def ended(self) -> None:
        """The loop polls its sockets again: the slice is over."""
        if self._began is None:
            return
        took = self._thread_time() - self._began
        self._began = None
        self.counts[bisect_left(BOUNDS_S, took)] += 1
        self.total_s += took
        self.worst_s = max(self.worst_s, took)

    def spent_s(self) -> float:
        """Return the processor time of the slice under way; 0 between slices."""
        return 0.0 if self._began is None else self._thread_time() - self._began

    def watch_collector(self) -> None:
        """Measure the garbage collector's pauses from now on."""
        if self._on_collection not in gc.callbacks:
            gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """Stop measuring pauses."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, _info: Mapping[str, Any]) -> None:
        now = self._thread_time()
        if phase == "start":
            self._pause_began = now
            return
        took = now - self._pause_began
        self.pauses += 1
        self.pauses_s += took
        self.worst_pause_s = max(self.worst_pause_s, took)

    def show(self, registry: Registry) -> None:
        """Declare the figures as metrics."""
        registry.read_histogram(
            "logberg_loop_slice_cpu_seconds",
            "Processor time that one slice of work on the loop takes",
            BOUNDS_S,
            lambda: (self.counts, self.total_s),
        )
        registry.read_gauge(
            "logberg_loop_slice_cpu_worst_seconds",
            "The longest slice since the start",
            lambda: self.worst_s,
        )
        registry.read_counter(
            "logberg_collector_pauses_total",
            "Times that Python's garbage collector ran",
            lambda: self.pauses,
        )
        registry.read_counter(
            "logberg_collector_pause_seconds_total",
            "Processor time of Python's garbage collector",
            lambda: self.pauses_s,
        )
        registry.read_gauge(
            "logberg_collector_pause_worst_seconds",
            "The longest run of Python's garbage collector since the start",
            lambda: self.worst_pause_s,
        )


def name_long_callbacks(
    on_long: Callable[[str, float], None],
    long_s: float = LONG_S,
    thread_time: Callable[[], float] = time.thread_time,
) -> Callable[[], None]:
    """Call `on_long` for each callback of any loop that takes longer than `long_s`.

    Its arguments are the callback's name, and its processor time in seconds. For diagnosis: this
    replaces a method of asyncio's handles, and costs about 0.6 µs a callback. Returns a function
    that ends it.
    """
    run = asyncio.Handle._run  # noqa: SLF001 - asyncio offers nothing for this but its debug mode

    def timed(handle: asyncio.Handle) -> None:
        callback = handle._callback  # type: ignore[attr-defined]  # noqa: SLF001
        began = thread_time()
        run(handle)
        took = thread_time() - began
        if took > long_s:
            on_long(_name_of(callback), took)

    def end() -> None:
        asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001

    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]  # noqa: SLF001
    return end


def _name_of(callback: object) -> str:
    """Name the function that a callback runs: for a task its coroutine."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, SliceTurns):
        return f"slice of {owner.name}"
    if isinstance(owner, asyncio.Task):
        return str(getattr(owner.get_coro(), "__qualname__", owner.get_coro()))
    return str(getattr(callback, "__qualname__", type(callback).__qualname__))
