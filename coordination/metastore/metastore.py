"""Kafka's `KafkaMetastore` (KIP-273): requests, handlers and the session, over a coordinator.

Rules, which are those of Kafka's ZooKeeper client:

- A path has at most one handler of each kind; registering another one replaces it. A handler is
  registered before the read that watches. Registering alone watches nothing.
- A watch fires once. The next read arms it again.
- `handle_requests` returns when all are answered. Requests for children of one node are done in
  their order, others at the same time, `max_in_flight` of them.
- When the session expires, all watches are gone. Each state handler is called before another
  session is begun, and after. The ephemeral nodes of the old session are deleted by any client.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, Protocol
from weakref import WeakValueDictionary

import structlog

from coordination.coordinator import Coordinator
from coordination.errors import (
    AuthFailed,
    CoordinationError,
    SessionClosed,
    SessionLost,
)
from coordination.metastore.requests import (
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetAclRequest,
    GetChildrenRequest,
    GetDataRequest,
    MetastoreResponse,
    MultiRequest,
    Request,
    ResultCode,
    SetAclRequest,
    SetDataRequest,
    ZnodeStat,
)
from coordination.metastore.tree import ZnodeError, ZnodeStore, node_key
from coordination.types import SessionId

_SESSIONS: Final = "metastore-sessions"
_AGAIN_S: Final = 0.5


class ZNodeChangeHandler(Protocol):
    """Is told once, after a read that watches, that a node came, went or has other data."""

    path: str

    def handle_creation(self) -> None: ...

    def handle_deletion(self) -> None: ...

    def handle_data_change(self) -> None: ...


class ZNodeChildChangeHandler(Protocol):
    """Is told once, after a list that watches, that a child came or went."""

    path: str

    def handle_child_change(self) -> None: ...


class StateChangeHandler(Protocol):
    """Is told that the session is over, and that another one has begun."""

    name: str

    def before_initializing_session(self) -> None: ...

    def after_initializing_session(self) -> None: ...


class KafkaMetastore:
    """Make it with `await KafkaMetastore.open(coordinator)`; close it before the coordinator."""

    def __init__(self, coordinator: Coordinator, max_in_flight: int) -> None:
        """See `open`."""
        self._coordinator = coordinator
        self._tree = ZnodeStore(coordinator.storage)
        self._in_flight = asyncio.Semaphore(max_in_flight)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By the path of the node above, while requests are under way."""
        self._changes: dict[str, ZNodeChangeHandler] = {}
        self._child_changes: dict[str, ZNodeChildChangeHandler] = {}
        self._states: dict[str, StateChangeHandler] = {}
        self._watches: dict[tuple[str, bool], asyncio.Task[None]] = {}
        """By path, and whether it watches the children."""
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = asyncio.Event()
        self._log = structlog.get_logger()

    @classmethod
    async def open(cls, coordinator: Coordinator, *, max_in_flight: int = 10) -> "KafkaMetastore":
        """Begin to serve requests. `max_in_flight`: how many are under way at once."""
        metastore = cls(coordinator, max_in_flight)
        await metastore._enter()
        metastore._tasks = [
            asyncio.create_task(metastore._follow_session(), name="metastore session"),
            asyncio.create_task(metastore._follow_others(), name="metastore orphans"),
        ]
        return metastore

    @property
    def session_id(self) -> SessionId:
        """The present session's."""
        return self._coordinator.session.id

    def register_znode_change_handler(self, handler: ZNodeChangeHandler) -> None:
        """Be told of the handler's path, from the next read of it on."""
        self._changes[handler.path] = handler

    def unregister_znode_change_handler(self, path: str) -> None:
        """Be told no more."""
        self._changes.pop(path, None)

    def register_znode_child_change_handler(self, handler: ZNodeChildChangeHandler) -> None:
        """Be told of the children of the handler's path, from the next list of them on."""
        self._child_changes[handler.path] = handler

    def unregister_znode_child_change_handler(self, path: str) -> None:
        """Be told no more."""
        self._child_changes.pop(path, None)

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        """Be told of the session's end and of the next one."""
        self._states[handler.name] = handler

    def unregister_state_change_handler(self, name: str) -> None:
        """Be told no more."""
        self._states.pop(name, None)

    async def handle_request(self, request: Request) -> MetastoreResponse:
        """Do one request."""
        return (await self.handle_requests([request]))[0]

    async def handle_requests(self, requests: Sequence[Request]) -> list[MetastoreResponse]:
        """Do all requests; return their responses in the same order."""
        return await asyncio.gather(*map(self._handled, requests))

    async def wait_until_connected(self) -> None:
        """Wait for a session."""
        await self._ready.wait()

    async def close(self) -> None:
        """Leave; the session's ephemeral nodes are deleted."""
        tasks = [*self._tasks, *self._watches.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # What is left behind here is deleted by the others, once the session is over.
        with contextlib.suppress(CoordinationError):
            group = self._coordinator.group(_SESSIONS)
            living = await group.membership_list() - {self.session_id}
            await self._tree.remove_orphans(living)
            await group.leave(self.session_id)

    # -- requests ----------------------------------------------------------------------------

    async def _handled(self, request: Request) -> MetastoreResponse:
        turn = self._turns.setdefault(request.path.rpartition("/")[0], asyncio.Lock())
        async with turn, self._in_flight:
            try:
                return await self._do(request)
            except ZnodeError as error:
                code = error.code
            except SessionLost:
                code = ResultCode.SESSION_EXPIRED
            except AuthFailed:
                code = ResultCode.AUTH_FAILED
            except CoordinationError as error:
                self._log.warning("metastore_request_failed", path=request.path, error=str(error))
                code = ResultCode.CONNECTION_LOSS
            return MetastoreResponse(code, request.path, request.ctx)

    async def _do(self, request: Request) -> MetastoreResponse:
        match request:
            case CreateRequest() | SetDataRequest() | DeleteRequest():
                return (await self._tree.write([request], self.session_id))[0]
            case MultiRequest():
                return await self._multi(request)
            case ExistsRequest() | GetDataRequest():
                return await self._read(request)
            case GetChildrenRequest():
                return await self._list(request)
            case GetAclRequest():
                found = await self._tree.read(request.path)
                code = ResultCode.NO_NODE if found is None else ResultCode.OK
                return MetastoreResponse(code, request.path, request.ctx)
            case SetAclRequest():
                return MetastoreResponse(ResultCode.INVALID_ACL, request.path, request.ctx)

    async def _multi(self, request: MultiRequest) -> MetastoreResponse:
        results = await self._tree.write(request.operations, self.session_id)
        refused = (ResultCode.OK, ResultCode.RUNTIME_INCONSISTENCY)
        code = next((r.code for r in results if r.code not in refused), ResultCode.OK)
        return MetastoreResponse(code, request.path, request.ctx, results=tuple(results))

    async def _read(self, request: ExistsRequest | GetDataRequest) -> MetastoreResponse:
        found = await self._tree.read(request.path)
        seen = None if found is None else found[1]
        if request.path in self._changes and (seen or isinstance(request, ExistsRequest)):
            self._arm(request.path, seen, children=False)
        if found is None:
            return MetastoreResponse(ResultCode.NO_NODE, request.path, request.ctx)
        data = found[0] if isinstance(request, GetDataRequest) else None
        return MetastoreResponse(ResultCode.OK, request.path, request.ctx, data=data, stat=found[1])

    async def _list(self, request: GetChildrenRequest) -> MetastoreResponse:
        found = await self._tree.children(request.path)
        if found is None:
            return MetastoreResponse(ResultCode.NO_NODE, request.path, request.ctx)
        names, stat = found
        if request.register_watch and request.path in self._child_changes:
            self._arm(request.path, stat, children=True)
        return MetastoreResponse(
            ResultCode.OK, request.path, request.ctx, children=names, stat=stat
        )

    # -- watches -----------------------------------------------------------------------------

    def _arm(self, path: str, seen: ZnodeStat | None, *, children: bool) -> None:
        """Fire once when the path is no more as it was seen."""
        key = (path, children)
        if key in self._watches:
            return  # Armed already, since an earlier read: it fires for that one.
        task = asyncio.create_task(self._watch(path, seen, children=children), name=f"watch {path}")
        self._watches[key] = task
        task.add_done_callback(lambda done: self._watch_ended(key, done))

    def _watch_ended(self, key: tuple[str, bool], task: asyncio.Task[None]) -> None:
        if self._watches.get(key) is task:
            del self._watches[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.warning("metastore_watch_failed", path=key[0], error=repr(error))

    async def _watch(self, path: str, seen: ZnodeStat | None, *, children: bool) -> None:
        async with self._coordinator.storage.watch(node_key(path)) as events:
            async for _ in events:
                found = await self._tree.read(path)
                now = None if found is None else found[1]
                if children and (now is None or seen is None or now.pzxid != seen.pzxid):
                    self._fire_children(path)
                    return
                if not children and _differs(seen, now):
                    self._fire(path, seen, now)
                    return

    def _fire(self, path: str, seen: ZnodeStat | None, now: ZnodeStat | None) -> None:
        self._watches.pop((path, False), None)
        handler = self._changes.get(path)
        if handler is None:
            return
        if now is None:
            handler.handle_deletion()
        elif seen is None:
            handler.handle_creation()
        else:
            handler.handle_data_change()

    def _fire_children(self, path: str) -> None:
        self._watches.pop((path, True), None)
        handler = self._child_changes.get(path)
        if handler is not None:
            handler.handle_child_change()

    # -- the session -------------------------------------------------------------------------

    async def _enter(self) -> None:
        group = self._coordinator.group(_SESSIONS)
        await group.join(self.session_id)
        await self._tree.remove_orphans(await group.membership_list())
        self._ready.set()

    async def _follow_session(self) -> None:
        while True:
            await self._coordinator.session.wait_lost()
            self._ready.clear()
            for task in list(self._watches.values()):
                task.cancel()
            self._watches.clear()
            for handler in list(self._states.values()):
                handler.before_initializing_session()
            await self._begin_again()
            for handler in list(self._states.values()):
                handler.after_initializing_session()

    async def _begin_again(self) -> None:
        while True:
            try:
                await self._coordinator.reopen()
                await self._enter()
                return
            except SessionClosed:
                raise
            except CoordinationError as error:
                self._log.warning("metastore_session_failed", error=str(error))
                await asyncio.sleep(_AGAIN_S)

    async def _follow_others(self) -> None:
        """Delete what sessions leave behind."""
        async with self._coordinator.group(_SESSIONS).watch() as events:
            async for event in events:
                try:
                    await self._tree.remove_orphans(event.members.keys())
                except CoordinationError as error:
                    # The next event, or the next client, finds them again.
                    self._log.warning("metastore_orphans_left", error=str(error))


def _differs(seen: ZnodeStat | None, now: ZnodeStat | None) -> bool:
    if seen is None or now is None:
        return seen is not now
    return (seen.czxid, seen.mzxid) != (now.czxid, now.mzxid)
