"""All watches of one client, on one WebSocket to etcd's watch stream.

Rule: a subscription gets every change of its keys once and in order, also when the socket breaks.
It knows the revision that comes next; on a new socket, perhaps to another server, it begins there.
When etcd has compacted that revision, the subscription says so and ends.

Watch ids are never used twice on a socket: etcd doesn't give back the id of a watch that it ended.
etcd answers requests to create in their order, and that order tells which one it refused.

A consumer that doesn't read stops its watch at `_MOST_WAITING` changes. The watch begins again
where it stopped when all of them are read.
"""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import msgspec

from coordination.backends.etcd import messages as wire
from coordination.backends.etcd.gateway import EtcdGateway
from coordination.errors import AuthFailed, CoordinationError, Unavailable

_PROGRESS_S: Final = 2.0
"""How often etcd is asked up to which revision everything was delivered."""
_PING_S: Final = 2.0
"""A server that answers no ping for half of this counts as dead."""
_CONNECT_S: Final = 2.0
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_MOST_WAITING: Final = 10_000


@dataclass(frozen=True, slots=True)
class DeliveredChanges:
    """Changes in their order, all up to the revision; or none, and that is progress."""

    revision: int
    changes: tuple[wire.WatchedChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """etcd has compacted what was to come next."""


@dataclass(frozen=True, slots=True)
class Refused:
    """etcd doesn't allow the watch."""

    error: CoordinationError


@dataclass(frozen=True, slots=True)
class Ended:
    """The subscription was closed."""


Message = DeliveredChanges | Forgotten | Refused | Ended


@dataclass(eq=False, slots=True)
class Subscription:
    """One range of keys, from a revision on."""

    key: bytes
    range_end: bytes
    next_revision: int
    waiting: deque[Message] = field(default_factory=deque)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    changes_waiting: int = 0
    watch_id: int | None = None
    """None: no server serves it now."""

    def put(self, message: Message) -> None:
        """Hand a message to the consumer."""
        if isinstance(message, DeliveredChanges):
            self.next_revision = message.revision + 1
            self.changes_waiting += len(message.changes)
        self.waiting.append(message)
        self.arrived.set()


class EtcdSubscriptions:
    """The socket, and who waits for what comes over it."""

    def __init__(self, gateway: EtcdGateway) -> None:
        self._gateway = gateway
        self._all: set[Subscription] = set()
        self._by_id: dict[int, Subscription] = {}
        self._asked: deque[Subscription] = deque()
        """Those whose creation etcd hasn't answered yet."""
        self._last_id = 0
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._running: asyncio.Task[None] | None = None
        self._closed = False

    async def begin(self, key: bytes, range_end: bytes, revision: int) -> Subscription:
        """Subscribe to all changes of the range from this revision on."""
        if self._closed:
            raise Unavailable("The connection to etcd is closed")
        subscription = Subscription(key, range_end, revision)
        self._all.add(subscription)
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name="etcd watches")
        await self._create(subscription)
        return subscription

    async def next(self, subscription: Subscription) -> Message:
        """Wait for what comes next; it may be called again after it was cancelled."""
        while not subscription.waiting:
            if subscription.watch_id is None:
                await self._create(subscription)
            subscription.arrived.clear()
            if not subscription.waiting:
                await subscription.arrived.wait()
        message = subscription.waiting.popleft()
        if isinstance(message, DeliveredChanges):
            subscription.changes_waiting -= len(message.changes)
        return message

    async def end(self, subscription: Subscription) -> None:
        """End a subscription, here and on the server."""
        self._all.discard(subscription)
        subscription.waiting.clear()
        subscription.put(Ended())
        await self._cancel(subscription)

    async def aclose(self) -> None:
        """End all subscriptions, and the socket."""
        self._closed = True
        for subscription in list(self._all):
            self._all.discard(subscription)
            subscription.put(Ended())
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _create(self, subscription: Subscription) -> None:
        """Ask the server to watch; without a socket, the next socket does."""
        if self._socket is None or subscription.watch_id is not None:
            return
        self._last_id += 1
        subscription.watch_id = self._last_id
        self._by_id[self._last_id] = subscription
        self._asked.append(subscription)
        create = wire.WatchCreateRequest(
            key=subscription.key,
            watch_id=self._last_id,
            range_end=subscription.range_end,
            start_revision=subscription.next_revision,
        )
        await self._send(wire.WatchRequest(create_request=create))

    async def _cancel(self, subscription: Subscription) -> None:
        if subscription.watch_id is not None:
            number, subscription.watch_id = subscription.watch_id, None
            self._by_id.pop(number, None)
            await self._send(wire.WatchRequest(cancel_request=wire.WatchCancelRequest(number)))

    async def _send(self, request: wire.WatchRequest) -> None:
        """Send a message. If the socket is broken, the task that reads it finds out."""
        if self._socket is not None and not self._socket.closed:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await self._socket.send_str(wire.encode(request).decode())

    async def _run(self) -> None:
        """Keep a socket to some server, as long as the client is open."""
        pause = _PAUSE_S
        while True:
            url = self._gateway.url
            try:
                await self._serve(url)
                pause = _PAUSE_S
            except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError):
                self._gateway.avoid(url)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            except CoordinationError:
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause)

    async def _serve(self, url: str) -> None:
        """Serve all subscriptions by one socket until it ends."""
        token = self._gateway.token
        async with asyncio.timeout(_CONNECT_S):
            socket = await self._gateway.http.ws_connect(
                url.replace("http", "ws", 1) + "/v3/watch",
                max_msg_size=0,
                heartbeat=_PING_S,
                # The gateway makes a header of it: "Authorization: Bearer <token>".
                protocols=("Bearer", token) if token else (),
            )
        progress = asyncio.create_task(self._ask_progress(url), name="etcd watch progress")
        try:
            self._socket = socket
            for subscription in list(self._all):
                await self._create(subscription)
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    await self._dispatch(wire.decode(message.data, wire.WatchMessage))
        finally:
            self._socket = None
            self._by_id.clear()
            self._asked.clear()
            for subscription in self._all:
                subscription.watch_id = None
            progress.cancel()
            await asyncio.gather(progress, return_exceptions=True)
            await socket.close()
        raise aiohttp.ServerDisconnectedError

    async def _ask_progress(self, url: str) -> None:
        """Ask for progress, and leave a server that the client's requests had to leave."""
        while True:
            await asyncio.sleep(_PROGRESS_S)
            if url != self._gateway.url and self._socket is not None:
                await self._socket.close()
                return
            if self._by_id:
                await self._send(wire.WatchRequest(progress_request=wire.EmptyRequest()))

    async def _dispatch(self, message: wire.WatchMessage) -> None:
        reply = message.result
        if reply is None:
            raise aiohttp.ServerDisconnectedError(message.error.message if message.error else None)
        if reply.created:
            asked = self._asked.popleft()
            if reply.canceled:
                await self._refuse(asked, reply.cancel_reason)
        elif reply.canceled:
            self._end_on_server(reply)
        elif reply.watch_id == -1:
            for subscription in list(self._by_id.values()):
                self._deliver_progress(subscription, reply.header.revision)
        else:
            await self._deliver(reply)

    async def _refuse(self, subscription: Subscription, reason: str) -> None:
        if "auth token" in reason or "user name is empty" in reason:
            # The login is too old: any request renews it, and the next socket carries the new one.
            await self._gateway.ask(
                "/v3/kv/range", wire.RangeRequest(key=subscription.key), wire.RangeReply
            )
            raise aiohttp.ServerDisconnectedError(reason)
        subscription.put(Refused(AuthFailed(f"etcd refuses the watch: {reason}")))
        self._all.discard(subscription)

    def _end_on_server(self, reply: wire.EtcdWatchReply) -> None:
        """Handle the end of a watch: etcd ended it by itself, or we did."""
        subscription = self._by_id.pop(reply.watch_id, None)
        if subscription is None:
            return
        subscription.watch_id = None
        if reply.compact_revision:
            self._all.discard(subscription)
            subscription.put(Forgotten())
        else:
            raise aiohttp.ServerDisconnectedError(reply.cancel_reason)

    def _deliver_progress(self, subscription: Subscription, revision: int) -> None:
        # A watch that begins in the future, or that was created meanwhile, is ahead.
        if revision >= subscription.next_revision - 1 and subscription not in self._asked:
            last = subscription.waiting[-1] if subscription.waiting else None
            if isinstance(last, DeliveredChanges) and not last.changes:
                subscription.waiting.pop()
            subscription.put(DeliveredChanges(revision))

    async def _deliver(self, reply: wire.EtcdWatchReply) -> None:
        subscription = self._by_id.get(reply.watch_id)
        if subscription is None or not reply.events:
            return
        subscription.put(DeliveredChanges(reply.events[-1].kv.mod_revision, reply.events))
        if subscription.changes_waiting >= _MOST_WAITING:
            await self._cancel(subscription)
