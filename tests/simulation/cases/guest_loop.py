"""An asyncio loop that is a guest of the simulated world: each of its callbacks is an event there.

Rule: a loop has no selector, no thread and no clock of its own. So a seed determines the order of
callbacks, as it does for everything else. Who needs a socket or a thread gets NotImplementedError.

A loop may belong to a simulated process. Then a pause of the process holds the loop too, as SIGSTOP
does, and after a kill none of its callbacks runs any more.
"""

import asyncio
import sys
from asyncio import events
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import US, ScheduledEvent, World

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


OnContext = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


class GuestTimer(asyncio.TimerHandle):
    """A timer of a guest loop."""

    event: ScheduledEvent | None = None


class GuestLoop(asyncio.AbstractEventLoop):
    """Runs tasks in the world. Its time is the world's."""

    def __init__(self, world: World, process: SimulatedProcess | None = None) -> None:
        """`process`: whose code this is; None: the tester's."""
        self._world = world
        self._process = process
        self.failures: list[str] = []
        """What nobody caught, one line each."""
        self._on_exception: OnContext | None = None

    def time(self) -> float:
        return self._world.now

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._world.schedule(0, partial(self._run, handle), self._process, "guest")
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = GuestTimer(when, callback, args, self, context)
        # Rounded up: at its end a timer must not be early.
        delay_us = int((when - self._world.now) * US) + 1
        run = partial(self._run, timer)
        timer.event = self._world.schedule(delay_us, run, self._process, "guest-timer")
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return False

    def get_exception_handler(self) -> OnContext | None:
        return self._on_exception

    def set_exception_handler(self, handler: OnContext | None) -> None:
        self._on_exception = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._on_exception is not None:
            self._on_exception(self, context)
        else:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close an async generator that nobody will go on with."""
        self.call_soon(lambda: self.create_task(generator.aclose()))

    def _timer_handle_cancelled(self, handle: GuestTimer) -> None:
        """Leave no event behind. `TimerHandle.cancel` calls this."""
        if handle.event is not None:
            handle.event.cancel()

    def _run(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        # A guest can be stepped while another one's callback runs: `SimulatedProcess.run` does it.
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            handle._run()
        finally:
            events._set_running_loop(outer)


def guest_loop(world: World, process: SimulatedProcess | None = None) -> GuestLoop:
    """Return a loop in the world."""
    return GuestLoop(world, process)  # type: ignore[abstract]  # what needs sockets raises


class GuestClock:
    """`runtime.clock.Clock` of a client: its callbacks run on its loop, and stop with its process.

    Clients and the tester are on one machine, as in the suite: their clocks show the same time.
    """

    def __init__(self, process: SimulatedProcess, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = process.clock
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> ScheduledEvent:
        timer: ScheduledEvent

        def due() -> None:
            # Cancelled between now and its turn on the loop, it must not run.
            timer.callback = callback
            self._loop.call_soon(run)

        def run() -> None:
            if timer.callback is not None:
                timer.callback = None
                callback()

        timer = self._clock.call_later(delay_s, due)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)


@contextmanager
def guests_finalized(loop: GuestLoop) -> Iterator[None]:
    """Let `loop` close the async generators that are given up, as a running loop does."""
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=loop.finalize)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*before)


def run_in_world(
    world: World, loop: GuestLoop, work: Coroutine[Any, Any, T], longest_s: float
) -> T:
    """Let the world go on until `work` is done; return its result.

    Raises SimulationFailedError if it isn't done after `longest_s` seconds of the world.
    """
    with guests_finalized(loop):
        task = loop.create_task(work)
        if not world.run_for(longest_s, task.done):
            world.fail(f"{task!r} hangs", None)
    result: T = task.result()
    return result
