"""One session with ZooKeeper that asyncio can ask: requests become futures, losses our errors.

Rule: a request is sent only in the session with which the connection began. A read is repeated
until its time is over. A change is sent once; when its reply is lost this raises `ReplyLost`, and
the caller finds out what happened.

A server that doesn't answer is left within a third of the request's time, so that another one still
can.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import kazoo.exceptions as zk
from kazoo.client import KazooClient
from kazoo.protocol.states import KeeperState

from coordination.backend import BackendSettings
from coordination.backends.zookeeper.access import ZooKeeperAccess
from coordination.backends.zookeeper.one_session import (
    RemoveWatches,
    SocketHandler,
    forbid_another_session,
    one_session_client,
)
from coordination.errors import AuthFailed, SessionLost, Unavailable
from coordination.types import SessionId
from coordination.until import ReplyLost, Until

_LOST: Final = (zk.ConnectionLoss, zk.SessionMovedError, zk.OperationTimeoutError)
_OVER: Final = (zk.SessionExpiredError, zk.ConnectionClosedError)

Request = Callable[[KazooClient], Any]
"""Begins a request: one of kazoo's methods `..._async`."""


class ZooKeeperConnection:
    """One session. Make it in the loop that uses it.

    With `pings` kazoo's thread keeps the session alive; otherwise the caller's heartbeats do,
    alone.
    """

    def __init__(
        self, settings: BackendSettings, access: ZooKeeperAccess, ttl_s: float, *, pings: bool
    ) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._attempt_s = settings.request_timeout_s / 3
        self._handler = SocketHandler(min(1.0, self._attempt_s), access.ssl)
        hosts = list(settings.endpoints)
        settings.dice.shuffle(hosts)
        self._client = one_session_client(
            ",".join(hosts),
            ttl_s,
            self._handler,
            digest=access.digest,
            sasl=access.sasl,
            acl=access.acl,
            pings=pings,
            connected=self._on_connected,
        )
        self._client.add_listener(self._on_state)
        self._ready = asyncio.Event()
        """The connection stands, or never will again."""
        self._refused = False
        self._over = False
        self.number: int | None = None
        """ZooKeeper's number of the session; None before the first connect."""
        self.ttl_s = ttl_s
        self.armed: Counter[RemoveWatches] = Counter()
        """The watches that stand on the server, and how many wait for each."""

    @property
    def session(self) -> SessionId:
        assert self.number is not None, "the connection wasn't opened"
        return session_id(self.number)

    @property
    def over(self) -> bool:
        return self._over

    @property
    def last_zxid(self) -> int:
        """A zxid that the server had reached when its last reply was sent."""
        return int(self._client.last_zxid)

    async def open(self, until: Until) -> None:
        """Connect. Raises AuthFailed, Unavailable."""
        self._client.start_async()
        try:
            await self._connected(until)
        except BaseException:
            await self.close(Until.after(0.0))
            raise

    async def read(self, request: Request, until: Until) -> Any:
        """Ask, and ask again when the reply is lost. Raises kazoo's NoNodeError and others."""
        while True:
            try:
                return await self._ask(request, until)
            except ReplyLost:
                if until.left_s <= 0:
                    raise Unavailable("ZooKeeper didn't answer in time") from None

    async def change(self, request: Request, until: Until) -> Any:
        """Ask once. Raises ReplyLost when it was sent and the reply is lost; kazoo's errors."""
        try:
            return await self._ask(request, until)
        except ReplyLost:
            until.lost = True
            raise

    async def sync(self, until: Until) -> None:
        """Let the server catch up with the leader, so that what is read next is linearizable."""
        await self.read(lambda client: client.sync_async("/"), until)

    async def pulse(self, until: Until) -> None:
        """One round trip to the leader, which refuses it when the session has expired."""
        await self.sync(until)

    async def close(self, until: Until) -> None:
        """End the session; returns when ZooKeeper has ended it, or when the time is over."""
        closed = self._loop.create_future()

        def stop() -> None:
            try:
                self._client.stop()
                self._client.close()
            except Exception:
                self._client.logger.debug("closing", exc_info=True)
            self._from_thread(lambda: None if closed.done() else closed.set_result(None))

        if not self._client.connected:
            self._handler.drop()
        self._client.handler.spawn(stop)
        done, _ = await asyncio.wait([closed], timeout=until.left_s or 0.2)
        if not done:
            self._handler.drop()
            await asyncio.wait([closed], timeout=0.2)
        self._over = True
        self._ready.set()

    async def _ask(self, request: Request, until: Until) -> Any:
        await self._connected(until)
        future: asyncio.Future[Any] = self._loop.create_future()
        request(self._client).rawlink(
            lambda reply: self._from_thread(lambda: _settle(future, reply))
        )
        try:
            async with asyncio.timeout(min(self._attempt_s, until.left_s)):
                return await future
        except TimeoutError:
            self._handler.drop()
            raise ReplyLost from None
        except _LOST:
            raise ReplyLost from None
        except _OVER:
            self._over = True
            raise SessionLost("ZooKeeper has ended the session") from None
        except (zk.NoAuthError, zk.AuthFailedError, zk.SessionClosedRequireSaslError) as error:
            raise AuthFailed(f"ZooKeeper refuses the credentials: {error!r}") from None

    async def _connected(self, until: Until) -> None:
        while not self._ready.is_set():
            if until.left_s <= 0:
                raise Unavailable(f"no server of {self._client.hosts} answered in time")
            try:
                async with asyncio.timeout(min(self._attempt_s, until.left_s)):
                    await self._ready.wait()
            except TimeoutError:
                self._handler.drop()
        if self._refused:
            raise AuthFailed("ZooKeeper refuses the credentials")
        if self._over:
            raise SessionLost("ZooKeeper has ended the session")

    def _on_connected(self, number: int, ttl_s: float) -> bool:
        """Called by kazoo's thread after each connect."""
        if self.number is not None and number != self.number:
            self._from_thread(self._end)
            return False
        self.number, self.ttl_s = number, ttl_s
        self._from_thread(self._ready.set)
        return True

    def _on_state(self, _state: object) -> None:
        """Called by kazoo's thread, also when the connection breaks."""
        state = self._client.client_state
        if state == KeeperState.CONNECTING:
            self._from_thread(self._suspend)
        elif state == KeeperState.EXPIRED_SESSION:
            forbid_another_session(self._client)
            self._from_thread(self._end)
        elif state == KeeperState.AUTH_FAILED:
            self._refused = True
            self._from_thread(self._end)

    def _suspend(self) -> None:
        if not self._over and not self._client.connected:
            self._ready.clear()

    def _end(self) -> None:
        self._over = True
        self._ready.set()

    def _from_thread(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return


def session_id(number: int) -> SessionId:
    """ZooKeeper shows sessions so too."""
    return SessionId(f"{number % 2**64:016x}")


def _settle(future: "asyncio.Future[Any]", reply: Any) -> None:
    if future.done():
        return
    if reply.exception is None:
        future.set_result(reply.value)
    else:
        future.set_exception(reply.exception)
