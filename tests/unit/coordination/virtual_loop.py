"""An event loop on virtual time: it never waits, it sets its clock forward to the next timer.

Rule: with nothing to do and no timer it raises, so a test that would hang fails at once.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import count
from typing import Any, TypeVar, cast

from coordination.backends.memory.connection import MemoryBackend
from coordination.backends.memory.store import MemoryStore
from coordination.connect import Connecting, connect
from coordination.coordinator import Coordinator
from coordination.errors import Unavailable
from runtime.asyncio_clock import AsyncioClock
from runtime.randomness import seeded

T = TypeVar("T")
_NUMBERS = count()


class _Selector(selectors.SelectSelector):
    """Sets the loop's time forward in place of waiting."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None):
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("nothing will ever happen any more: a task hangs")
            self.loop.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is `now_s`."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.number = next(_NUMBERS)
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now_s


class VirtualClock(AsyncioClock):
    """A virtual loop's time, which a test may also move without the loop, as a pause does."""

    def __init__(self) -> None:
        self.loop = cast("VirtualLoop", asyncio.get_running_loop())
        super().__init__(self.loop)

    def monotonic(self) -> float:
        return self.loop.time()

    def pause(self, seconds: float) -> None:
        """Let time pass in which no callback ran: the process was stopped."""
        self.loop.now_s += seconds


def virtual(test: Callable[..., Coroutine[object, object, T]]) -> Callable[..., T]:
    """Run a coroutine function on virtual time; its errors and forgotten tasks fail the test."""

    @wraps(test)
    def run(*args, **kwargs) -> T:
        loop = VirtualLoop()
        failures: list[dict] = []
        loop.set_exception_handler(lambda _, context: failures.append(context))
        try:
            result = loop.run_until_complete(test(*args, **kwargs))
            left = {task.get_name() for task in asyncio.all_tasks(loop)}
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
        assert not failures, failures
        assert not left, f"tasks are left: {left}"
        return result

    return run


def client(name: str = "a", **settings: Any) -> Connecting:
    """Connect to the store in memory, on the running loop's virtual time."""
    clock = VirtualClock()
    url = f"memory://store-of-loop-{clock.loop.number}"
    return connect(url, clock=clock, dice=seeded(name), **settings)


def store_of(coordinator: Coordinator) -> MemoryStore:
    """Return the store itself."""
    return cast("MemoryBackend", coordinator.backend).store


def cut(coordinator: Coordinator) -> None:
    """Let no request of a client reach the store from here on."""

    async def unreachable(*args: object, **kwargs: object) -> None:
        await asyncio.sleep(0.1)
        raise Unavailable("cut off")

    for name in ("renew", "enter", "leave", "change", "commit", "entries", "get", "end_session"):
        setattr(coordinator.backend, name, unreachable)


def heal(coordinator: Coordinator) -> None:
    """End a cut."""
    for name in ("renew", "enter", "leave", "change", "commit", "entries", "get", "end_session"):
        delattr(coordinator.backend, name)


async def kill(coordinator: Coordinator) -> None:
    """End a client without a word to the store: no heartbeat, no goodbye."""
    coordinator.session._beats.cancel()
    await coordinator.backend.aclose()
