"""Heartbeats: they renew one session until it is over.

Rule: a heartbeat counts from when it was sent. One that fails is repeated sooner. Heartbeats run on
the client's own loop, or on the loop of a thread (`heartbeat_thread`). They share only the
session's deadline with the rest of the client, and report what came of each to `heard`.
"""

import asyncio
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from coordination.backend import Backend
from coordination.errors import SessionLost
from coordination.scopes import sleep
from coordination.session_deadline import SessionDeadline
from coordination.types import SessionId
from runtime.clock import Clock


class SessionHeartbeats:
    """The heartbeats of one session."""

    def __init__(
        self,
        session: SessionId,
        deadline: SessionDeadline,
        every_s: Callable[[], float],
        heard: Callable[[Exception | None], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`every_s`: the time between two, as the ttl is now. `heard` gets None for a success."""
        self._session = session
        self._deadline = deadline
        self._every_s = every_s
        self._heard = heard
        self._log = log

    async def run(self, backend: Backend, clock: Clock) -> None:
        """Send heartbeats until the session is over; backend and clock are those of this loop."""
        wait_s = self._every_s()
        while not self._deadline.passed:
            await sleep(clock, wait_s)
            wait_s = self._every_s()
            try:
                await self.send(backend, clock)
            except SessionLost:
                return
            except Exception as error:  # noqa: BLE001 - whatever a driver raises, go on trying
                self._log.warning("coordination_heartbeat_failed", error=repr(error))
                self._heard(error)
                wait_s /= 4

    async def send(self, backend: Backend, clock: Clock) -> None:
        """Send one. Raises SessionLost, TimeoutError, and what the backend raises."""
        sent_s = clock.monotonic()
        try:
            async with asyncio.timeout(self._every_s()):
                ttl_s = await backend.renew(self._session)
        except SessionLost as lost:
            self._heard(lost)
            raise
        self._deadline.extend(sent_s, ttl_s)
        self._heard(None)
