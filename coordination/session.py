"""A session: heartbeats, and the moment up to which it certainly lives.

Rule: the deadline is the time at which the last acknowledged heartbeat was SENT, plus the granted
ttl, minus the safety margin. The store counts the same ttl from when it received that heartbeat,
which is later. So the client stops before the store gives anything away, without hearing from it.

Once the deadline has passed, the session is LOST, whatever arrives afterwards. Time is monotonic
and counts the machine's sleep, so no wall clock can lengthen a session. Later, when the margin is
over too, the client tells the store, in case the store didn't notice the silence.

`state` and `check` may be asked on any thread; everything else belongs to the loop's thread. The
heartbeats may run on another thread, see `session_heartbeats`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from structlog.typing import FilteringBoundLogger

from coordination.backend import Backend, OpenedSession
from coordination.errors import CoordinationError, SessionClosed, SessionLost
from coordination.scopes import CancelScope, EndSignal, sleep
from coordination.session_deadline import SessionDeadline
from coordination.session_heartbeats import SessionHeartbeats
from coordination.types import Revision, SessionId, SessionState
from runtime.clock import Clock

LOOK_S = 0.5
"""How often the deadline is compared with the clock. A loop's timers stand still while the machine
sleeps, but the clock doesn't."""
Begin = Callable[[Callable[[Backend, Clock], Coroutine[Any, Any, None]]], "asyncio.Future[None]"]
"""Starts work that is given the backend and the clock of the loop on which it runs."""
FINAL = frozenset({SessionState.LOST, SessionState.CLOSED})


@dataclass(frozen=True, slots=True)
class SessionTimes:
    """What determines a session's deadline, in seconds."""

    margin_s: float
    heartbeats: int = 3
    """Sent within the time from one acknowledgement to the deadline."""


class Session:
    """One session of this client. LOST and CLOSED are final; a new session is another object."""

    def __init__(
        self,
        backend: Backend,
        opened: OpenedSession,
        sent_s: float,
        times: SessionTimes,
        clock: Clock,
        log: FilteringBoundLogger,
        begin: Begin | None = None,
    ) -> None:
        """`sent_s`: when the request for it was sent, on the clock.

        `begin` starts the heartbeats; None: on this loop.
        """
        self.id: SessionId = opened.id
        self.epoch: Revision = opened.epoch
        self.signal = EndSignal()
        """Ends with SessionLost or SessionClosed."""
        self._backend = backend
        self._times = times
        self._clock = clock
        self._log = log.bind(session=opened.id)
        self._state = SessionState.CONNECTED
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._giving_up: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Queue[SessionState]] = set()
        self._deadline = SessionDeadline(clock, sent_s, opened.ttl_s, times.margin_s)
        self._heartbeats = SessionHeartbeats(
            opened.id, self._deadline, lambda: self._beat_s, self._hear, self._log
        )
        self._beats = (begin or self._begin)(self._heartbeats.run)
        self._timer = clock.call_later(0, self._look)

    @property
    def ttl(self) -> float:
        """Seconds after which the store may end the silent session, as the store granted them."""
        return self._deadline.ttl_s

    @property
    def deadline(self) -> float:
        """The monotonic time up to which the session certainly lives on the server."""
        return self._deadline.at_s

    @property
    def state(self) -> SessionState:
        """What the client knows now."""
        self._notice()
        late = self._state not in FINAL and self._deadline.passed
        return SessionState.LOST if late else self._state

    def check(self) -> None:
        """Raise SessionLost or SessionClosed if the session is over, also if only just now."""
        self._notice()
        self.signal.check()
        if self._deadline.passed:
            raise SessionLost(self._silence)

    async def events(self) -> AsyncIterator[SessionState]:
        """Yield the present state, then each one that follows; ends after a final one."""
        states: asyncio.Queue[SessionState] = asyncio.Queue()
        states.put_nowait(self.state)
        self._watchers.add(states)
        try:
            state = SessionState.CONNECTED
            while state not in FINAL:
                state = await states.get()
                yield state
        finally:
            self._watchers.discard(states)

    async def wait_lost(self) -> None:
        """Return when the session is over, for whatever reason."""
        await self.signal.over.wait()

    def scope(self) -> CancelScope:
        """Cancel the body of an `async with` when the session is over, and raise SessionLost."""
        return CancelScope(self.signal, self.check)

    def lose(self, why: str) -> None:
        """The store says that the session is over."""
        self._end(SessionState.LOST, SessionLost(why))

    async def verify(self) -> None:
        """Ask the store now. Raises SessionLost if the session is over, and nothing else."""
        self.check()
        try:
            await self._heartbeats.send(self._backend, self._clock)
        except (CoordinationError, TimeoutError):
            self.check()

    def stop(self) -> None:
        """End the session here. On the server it lives until `close`, or until it expires."""
        self._end(SessionState.CLOSED, SessionClosed("the client closed its session"))

    async def close(self) -> None:
        """End the session here and on the server; errors of the server are left to expiry."""
        self.stop()
        ending = [self._beats] if self._giving_up is None else [self._beats, self._giving_up]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        if self._state is SessionState.CLOSED and not self._closed:
            self._closed = True
            try:
                await self._backend.end_session(self.id)
            except CoordinationError as error:
                self._log.warning("coordination_session_not_ended", error=str(error))

    # -- heartbeats ---------------------------------------------------------------------------

    @property
    def _beat_s(self) -> float:
        return max((self.ttl - self._times.margin_s) / self._times.heartbeats, 0.001)

    def _begin(
        self, work: Callable[[Backend, Clock], Coroutine[Any, Any, None]]
    ) -> "asyncio.Future[None]":
        beats = work(self._backend, self._clock)
        return asyncio.create_task(beats, name=f"heartbeats of {self.id}")

    def _hear(self, error: Exception | None) -> None:
        """Learn what came of a heartbeat, on the thread that sent it."""
        if runs_here(self._loop):
            self._heard(error)
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._heard, error)

    def _heard(self, error: Exception | None) -> None:
        self._notice()
        if isinstance(error, SessionLost):
            self.lose(str(error) or "the store says that the session is over")
        else:
            self._change(SessionState.CONNECTED if error is None else SessionState.SUSPENDED)
        self._notice()

    # -- the end ------------------------------------------------------------------------------

    @property
    def _silence(self) -> str:
        return f"no heartbeat was acknowledged within the ttl of {self.ttl} s"

    def _notice(self) -> None:
        """Lose the session if its deadline has passed."""
        if self._state in FINAL or not self._deadline.passed:
            return
        if not runs_here(self._loop):
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._notice)
            return
        self._end(SessionState.LOST, SessionLost(self._silence))
        self._giving_up = asyncio.create_task(self._give_up(), name=f"end of {self.id}")

    async def _give_up(self) -> None:
        """Tell the store that a session is over whose silence it may not have noticed.

        Not before the margin is over: until then nobody else gets what the session held.
        """
        await sleep(self._clock, self._times.margin_s)
        for _ in range(self._times.heartbeats):
            try:
                await self._backend.end_session(self.id)
            except CoordinationError:
                await sleep(self._clock, self._beat_s)
            else:
                return

    def _look(self) -> None:
        self._notice()
        if not self.signal.over.is_set():
            left_s = self.deadline - self._clock.monotonic()
            self._timer = self._clock.call_later(min(left_s, LOOK_S), self._look)

    def _end(self, state: SessionState, error: SessionLost) -> None:
        if self._state in FINAL:
            return
        self._change(state)
        self._timer.cancel()
        self.signal.end(error)
        if self._beats is not asyncio.current_task():
            self._beats.cancel()

    def _change(self, state: SessionState) -> None:
        if state is self._state or self._state in FINAL:
            return
        self._log.info("coordination_session", state=state.value, was=self._state.value)
        self._state = state
        for states in self._watchers:
            states.put_nowait(state)


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the thread of the running loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
