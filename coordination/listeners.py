"""KIP-30's listeners: objects that are called with the whole new state.

Rule: a listener is permanent, so it survives lost connections and its own exceptions. It is called
with the present state first, then at least once after every change with the latest state, in order
of revisions, one call at a time. States between two calls may be left out. One listener never
delays another. A removed one isn't called any more; a call that runs already ends by itself.

Each method may be a coroutine. A plain callable serves as a listener too.
"""

import asyncio
import inspect
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar, runtime_checkable

from structlog.typing import FilteringBoundLogger

from coordination.errors import CoordinationError, SessionClosed
from coordination.scopes import sleep
from coordination.watches import Watch
from runtime.clock import Clock

E = TypeVar("E")
AGAIN_S = 1.0
"""After an error of its watch, a listener's watch begins anew so much later."""
OnError = Callable[[Exception, object], None]
"""Gets a listener's exception, and the listener."""


@runtime_checkable
class GroupChangeListener(Protocol):
    """Learns of a group's members."""

    def on_group_change(self, members: frozenset[str], /) -> object: ...


@runtime_checkable
class LeaderChangeListener(Protocol):
    """Learns who leads; None: nobody."""

    def on_leader_change(self, leader: str | None, /) -> object: ...


@runtime_checkable
class ValueChangeListener(Protocol):
    """Learns of a key's value; None: the key is gone."""

    def value_changed(self, value: bytes | None, /) -> object: ...


@runtime_checkable
class KeySetChangeListener(Protocol):
    """Learns of a namespace's keys."""

    def key_set_changed(self, keys: frozenset[str], /) -> object: ...


OnGroup = GroupChangeListener | Callable[[frozenset[str]], object]
OnLeader = LeaderChangeListener | Callable[[str | None], object]
OnValue = ValueChangeListener | Callable[[bytes | None], object]
OnKeySet = KeySetChangeListener | Callable[[frozenset[str]], object]


class Listeners:
    """The listeners of one client, each with a watch and a task of its own."""

    def __init__(self, clock: Clock, on_error: OnError | None, log: FilteringBoundLogger) -> None:
        """`on_error` is called with each exception of a listener, after it was logged."""
        self._clock = clock
        self._on_error = on_error
        self._log = log
        self._running: dict[tuple[Hashable, Hashable], _Listening] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add(
        self,
        about: tuple[Hashable, str],
        listener: object,
        watch: Callable[[], Watch[E]],
        value_of: Callable[[E], object],
    ) -> None:
        """Begin to call a listener; one that is there already is called once all the same.

        `about`: what it listens to, and its method's name.
        """
        key = (about, identity(listener))
        if key not in self._running:
            call = getattr(listener, about[1], listener)
            if not callable(call):
                raise TypeError(f"a listener needs a method {about[1]}, or is a callable itself")
            self._running[key] = _Listening(self, listener, call, watch, value_of)

    def remove(self, about: tuple[Hashable, str], listener: object) -> None:
        """Don't call a listener any more; an unknown one is ignored."""
        listening = self._running.pop((about, identity(listener)), None)
        if listening is not None:
            self._ending.add(listening.task)
            listening.task.add_done_callback(self._ending.discard)
            listening.remove()

    async def aclose(self) -> None:
        """Remove all; calls that run are cancelled."""
        running, self._running = list(self._running.values()), {}
        tasks = [*(listening.task for listening in running), *self._ending]
        own = asyncio.current_task()
        for task in tasks:
            if task is not own:
                task.cancel()
        await asyncio.gather(*(t for t in tasks if t is not own), return_exceptions=True)

    async def pause(self) -> None:
        """Wait before a watch that failed begins anew."""
        await sleep(self._clock, AGAIN_S)

    def report(self, error: Exception, listener: object) -> None:
        """Log a listener's exception and pass it on."""
        self._log.error("coordination_listener_failed", error=repr(error), listener=repr(listener))
        if self._on_error is not None:
            self._on_error(error, listener)


def identity(listener: object) -> Hashable:
    """Return what tells listeners apart; a bound method is a new object each time it is named."""
    return listener if inspect.ismethod(listener) else id(listener)


class _Listening:
    """One listener at work."""

    def __init__(
        self,
        owner: Listeners,
        listener: object,
        call: Callable[..., object],
        watch: Callable[[], Watch[Any]],
        value_of: Callable[[Any], object],
    ) -> None:
        self._owner = owner
        self._listener = listener
        self._call = call
        self._watch = watch
        self._value_of = value_of
        self._removed = False
        self._calling = False
        self.task = asyncio.create_task(self._listen(), name=f"listener {listener!r}")

    def remove(self) -> None:
        """Call no more. A call that runs ends by itself; it may be the one that removes."""
        self._removed = True
        if not self._calling:
            self.task.cancel()

    async def _listen(self) -> None:
        while True:
            try:
                async with self._watch() as events:
                    async for event in events:
                        await self._tell(self._value_of(event))
                        if self._removed:  # by its own call, or by another task meanwhile
                            return
            except SessionClosed:
                return
            except CoordinationError as error:
                self._owner.report(error, self._listener)
                await self._owner.pause()

    async def _tell(self, value: object) -> None:
        self._calling = True
        try:
            result = self._call(value)
            if inspect.isawaitable(result):
                await result
        except Exception as error:  # noqa: BLE001 - a listener may raise anything
            self._owner.report(error, self._listener)
        finally:
            self._calling = False
