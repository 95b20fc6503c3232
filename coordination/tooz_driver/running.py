"""A started coordinator: the client, the thread of its loop, and the application's heartbeat.

Rule: the calls of one coordinator run in the order in which they were made, but for those that may
wait for long (`run_beside`). Our session beats by itself, so this class closes the client when the
application didn't call `note_heartbeat` for a time-out. A process that hangs loses its memberships.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tooz.coordination import CoordAsyncResult, CoordinatorResult

from coordination.coordinator import Coordinator
from coordination.loop_thread import LoopThread
from coordination.tooz_driver.groups import ToozGroups
from coordination.tooz_driver.translating import translated

T = TypeVar("T")


class RunningClient:
    """Make it with `start`."""

    def __init__(
        self, thread: LoopThread, client: Coordinator, member_id: bytes, timeout_s: float
    ) -> None:
        """See `start`. To be called on the loop's thread."""
        self._thread = thread
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._beat = asyncio.Event()
        self._waiting = asyncio.create_task(self._end_without_heartbeat(), name="heartbeat")
        self.client = client
        self.groups = ToozGroups(client, member_id)

    @classmethod
    def start(
        cls, connect: Callable[[], Awaitable[Coordinator]], member_id: bytes, timeout_s: float
    ) -> "RunningClient":
        """Connect in a thread of its own. Raises tooz's errors."""
        thread = LoopThread()

        async def begin() -> RunningClient:
            return cls(thread, await connect(), member_id, timeout_s)

        try:
            with translated():
                return thread.run(begin())
        except BaseException:
            thread.close()
            raise

    def stop(self) -> None:
        """Leave everything. Raises tooz's errors; the thread ends all the same."""
        try:
            with translated():
                self._thread.run(self._close())
        finally:
            self._thread.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> CoordAsyncResult[T]:
        """Run a call behind those that were made before it."""
        return CoordinatorResult(self._thread.submit(self._in_turn(work)), translated)

    def run_beside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a call that may wait for long, and that no other one waits for."""
        with translated():
            return self._thread.run(work)

    async def note_heartbeat(self) -> None:
        """The application lives. Raises SessionLost."""
        await self.client.session.verify()
        self._beat.set()

    async def _close(self) -> None:
        self._waiting.cancel()
        await self.client.aclose()

    async def _in_turn(self, work: Coroutine[Any, Any, T]) -> T:
        async with self._turn:
            return await work

    async def _end_without_heartbeat(self) -> None:
        while True:
            self._beat.clear()
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._beat.wait()
            except TimeoutError:
                await self.client.aclose()
                return
