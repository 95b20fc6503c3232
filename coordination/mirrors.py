"""Watches that share one copy of a scope's state, for stores that can't send a change by itself.

Rule: a `Mirror` holds the last state of one scope that its backend read. Each watch compares that
state with the one that it reported last, so a slow watch skips states. A new watch waits for a
reading that began after the watch did: its snapshot holds all that was acknowledged before.

Example: three watches of key `a` share one mirror, so a change of `a` costs one reading. When the
last of the three is closed, the mirror ends.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from coordination.backend import WatchBatch, WatchScope
from coordination.errors import AuthFailed, CoordinationError
from coordination.types import Revision

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class StateView(Protocol[S_contra]):
    """Makes batches of a scope's states."""

    def whole(self, state: S_contra) -> WatchBatch:
        """Return the state as a snapshot."""
        ...

    def since(self, after: Revision, state: S_contra) -> WatchBatch | None:
        """Return what changed after a revision at which nobody watched; None: nothing."""
        ...

    def difference(self, old: S_contra, new: S_contra) -> WatchBatch | None:
        """Return what changed between two states; None: nothing."""
        ...


@dataclass(frozen=True, slots=True)
class MirrorReading(Generic[S]):
    """What one reading found."""

    state: S
    calm: Revision | None = None
    """Nothing changed between `state` and this revision; None: the reading doesn't know."""


class Mirror(ABC, Generic[S]):
    """The state of one scope, which a task of its own keeps up to date.

    The task reads when somebody called `ask` or `wake`, and at the latest `every_s` seconds after
    the last reading (None: never by itself). It tries a failed reading again after `pause_s`
    seconds. Only AuthFailed, and errors that no backend may raise, end the mirror and its watches.
    """

    def __init__(self, view: StateView[S], *, every_s: float | None, pause_s: float) -> None:
        self.view = view
        self._every_s = every_s
        self._pause_s = pause_s
        self._asked = 0
        self._served = 0
        self._reads = False
        self._woken = asyncio.Event()
        self._bells: set[asyncio.Event] = set()
        self._task = asyncio.ensure_future(self._run())
        self.state: S | None = None
        self.failure: Exception | None = None
        self.calm = Revision(0)
        """Nothing changed between `state` and this revision."""
        self.pulses = 0
        """How often the scope was found calm."""

    @property
    def watched(self) -> bool:
        return bool(self._bells)

    def subscribe(self) -> asyncio.Event:
        """Return an event that the mirror sets when there may be news."""
        bell = asyncio.Event()
        self._bells.add(bell)
        return bell

    def unsubscribe(self, bell: asyncio.Event) -> None:
        self._bells.discard(bell)

    def ask(self) -> int:
        """Ask for a reading that begins after now; `has_served` says when it is there."""
        self._asked += 1
        self._woken.set()
        return self._asked

    def has_served(self, number: int) -> bool:
        return self._served >= number

    def wake(self) -> None:
        """Read soon: the state may have changed."""
        self._woken.set()

    def note_calm(self, revision: Revision) -> None:
        """Nothing changed up to this revision, unless a reading is under way or due."""
        if not (self._woken.is_set() or self._reads or self._served < self._asked):
            self._pulse(revision)
            self._ring()

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._release()

    @abstractmethod
    async def _read(self, *, anew: bool) -> MirrorReading[S]:
        """Read the state. `anew`: it holds all that was acknowledged before this call.

        Raises AuthFailed; other errors of `coordination.errors` and TimeoutError mean: try again.
        """

    async def _release(self) -> None:
        """Give up what the store keeps for this mirror."""

    async def _run(self) -> None:
        while self.failure is None:
            await self._wait()
            self._woken.clear()
            asked = self._asked
            self._reads = True
            try:
                reading = await self._read(anew=asked > self._served)
            except AuthFailed as error:
                self.failure = error
            except (CoordinationError, TimeoutError):
                self._woken.set()
                await asyncio.sleep(self._pause_s)
                continue
            except Exception as error:  # noqa: BLE001 - the watches raise it
                self.failure = error
            else:
                self.state = reading.state
                self._served = asked
                if reading.calm is not None:
                    self._pulse(reading.calm)
            finally:
                self._reads = False
            self._ring()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._every_s):
                await self._woken.wait()
        except TimeoutError:
            return

    def _pulse(self, revision: Revision) -> None:
        self.calm = max(self.calm, revision)
        self.pulses += 1

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()


class MirrorWatch(Generic[S]):
    """One watch: `coordination.backend.BackendWatch`.

    It reports progress when the mirror has pulsed `progress_every` times since its last batch.
    """

    def __init__(
        self,
        mirror: Mirror[S],
        after: Revision | None,
        progress_every: int,
        closed: Callable[[], Awaitable[None]],
    ) -> None:
        self._mirror = mirror
        self._after = after
        self._progress_every = progress_every
        self._on_close = closed
        self._bell = mirror.subscribe()
        self._asked = mirror.ask()
        self._reported: S | None = None
        self._revision = Revision(0) if after is None else after
        self._pulses = mirror.pulses
        self._open = True

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while self._open:
            await self._bell.wait()
            self._bell.clear()
            if self._mirror.failure is not None:
                raise self._mirror.failure
            batch = self._next() if self._open else None
            if batch is not None:
                self._pulses = self._mirror.pulses
                # A view may know only an older revision, such as a removed node's folder's.
                self._revision = max(self._revision, batch.revision)
                return replace(batch, revision=self._revision)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._mirror.unsubscribe(self._bell)
            self._bell.set()
            await self._on_close()

    def _next(self) -> WatchBatch | None:
        mirror = self._mirror
        state = mirror.state
        if state is None or not mirror.has_served(self._asked):
            return None
        old, self._reported = self._reported, state
        if old is not None:
            batch = mirror.view.difference(old, state)
        elif self._after is not None:
            batch = mirror.view.since(self._after, state)
        else:
            batch = mirror.view.whole(state)
        if batch is None and mirror.pulses - self._pulses >= self._progress_every:
            return WatchBatch("progress", mirror.calm)
        return batch


M = TypeVar("M", bound=Mirror[Any])


class Mirrors(Generic[M]):
    """The mirrors of one backend, one for each scope that somebody watches."""

    def __init__(self, make: Callable[[WatchScope], M], progress_every: int) -> None:
        self._make = make
        self._progress_every = progress_every
        self._by_scope: dict[WatchScope, M] = {}

    def __iter__(self) -> Iterator[M]:
        return iter(list(self._by_scope.values()))

    def __bool__(self) -> bool:
        return bool(self._by_scope)

    def watch(self, scope: WatchScope, after: Revision | None) -> MirrorWatch[Any]:
        mirror = self._by_scope.get(scope)
        if mirror is None or mirror.failure is not None:
            mirror = self._by_scope[scope] = self._make(scope)

        async def closed() -> None:
            if mirror.watched:
                return
            if self._by_scope.get(scope) is mirror:
                del self._by_scope[scope]
            await mirror.aclose()

        return MirrorWatch(mirror, after, self._progress_every, closed)

    async def aclose(self) -> None:
        mirrors, self._by_scope = list(self._by_scope.values()), {}
        for mirror in mirrors:
            await mirror.aclose()
