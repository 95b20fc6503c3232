"""ZooKeeper's nodes as keys of a store: each node is one key, with what its stat tells.

Rules: a request reads the nodes that it needs, decides, and writes in one transaction whose
conditions are the revisions that it read. If somebody was quicker, it begins again. Whoever makes
or deletes a node also writes the parent, as ZooKeeper does. So a node with children is never
deleted, and a watch of the parent sees children come and go.

The key holds the node's depth before its path, `n/2/brokers/ids`: so the children of a node have a
prefix of their own. An ephemeral node has a second key, `e/SESSION/PATH`, by which it is found when
its session is over; `remove_orphans` deletes such nodes.
"""

import dataclasses
from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from coordination.errors import KeyExists, KeyMissing, RevisionMismatch
from coordination.metastore.requests import (
    ANY_VERSION,
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    MetastoreResponse,
    Operation,
    ResultCode,
    SetDataRequest,
    ZnodeStat,
)
from coordination.storage import Storage
from coordination.transactions import Txn
from coordination.types import Revision, SessionId

_ROOT: Final = "/"


class StoredZnode(msgspec.Struct, frozen=True, array_like=True):
    """A node as its key holds it. A zxid that is None is the key's own mod revision."""

    data: bytes = b""
    owner: str = ""
    version: int = 0
    cversion: int = 0
    children: int = 0
    created: int = 0
    """How many children were ever made: the number of the next sequential one."""
    czxid: int | None = None
    mzxid: int | None = None
    pzxid: int | None = None


class ZnodeError(Exception):
    """An operation is refused."""

    def __init__(self, code: ResultCode) -> None:
        super().__init__(code.value)
        self.code = code


class ZnodeStore:
    """The nodes in one storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def read(self, path: str) -> tuple[bytes, ZnodeStat] | None:
        """Return a node's data and stat, or None. Raises ZnodeError BAD_ARGUMENTS."""
        found = await _fetch(self._storage, path)
        return None if found.node is None else (found.node.data, _stat(found))

    async def children(self, path: str) -> tuple[tuple[str, ...], ZnodeStat] | None:
        """Return the names of a node's children, sorted, and its stat; None: no such node."""
        found = await _fetch(self._storage, path)
        if found.node is None:
            return None
        folder = _children_of(path)
        keys = [r.key async for r in self._storage.list(folder, keys_only=True)]
        return tuple(key[len(folder) + 1 :] for key in keys), _stat(found)

    async def write(
        self, operations: Sequence[Operation], session: SessionId
    ) -> list[MetastoreResponse]:
        """Do all operations or none, and return the response to each."""
        while True:
            edit = _Edit(self._storage, session)
            try:
                return await edit.make(operations)
            except (RevisionMismatch, KeyExists, KeyMissing):
                continue  # Somebody else was quicker.

    async def remove_orphans(self, living: Collection[str]) -> None:
        """Delete the ephemeral nodes of all sessions but these, by their ids."""
        async for record in self._storage.list("e", keys_only=True):
            _, session, quoted = record.key.split("/")
            if session in living:
                continue
            path = unquote(quoted)
            found = await _fetch(self._storage, path)
            if found.node is None or found.node.owner != session:
                await self._storage.delete(record.key)
            else:
                await self.write([DeleteRequest(path)], SessionId(session))


@dataclasses.dataclass(slots=True)
class _Loaded:
    """A node as it was read, and as it is to be."""

    path: str
    node: StoredZnode | None
    revision: Revision | None
    changed: bool = False


class _Edit:
    """One attempt at a transaction."""

    def __init__(self, storage: Storage, session: SessionId) -> None:
        self._storage = storage
        self._session = session
        self._loaded: dict[str, _Loaded] = {}
        self._ephemerals: dict[str, bool] = {}
        """Keys beside ephemeral nodes: True to make one, False to delete it."""

    async def make(self, operations: Sequence[Operation]) -> list[MetastoreResponse]:
        done: list[tuple[Operation, str]] = []
        for index, operation in enumerate(operations):
            try:
                done.append((operation, await self._apply(operation)))
            except ZnodeError as error:
                return _all_refused(operations, index, error.code)
        revision = await self._commit()
        return [self._response(operation, path, revision) for operation, path in done]

    async def _apply(self, operation: Operation) -> str:
        """Change the loaded nodes; return the path of the node. Raises ZnodeError."""
        if isinstance(operation, CreateRequest):
            return await self._create(operation)
        found = await self._load(operation.path)
        node = _present(found)
        if operation.version not in (ANY_VERSION, node.version):
            raise ZnodeError(ResultCode.BAD_VERSION)
        if isinstance(operation, SetDataRequest):
            self._set(found, data=operation.data, version=node.version + 1, mzxid=None)
        elif isinstance(operation, DeleteRequest):
            await self._delete(found, node)
        else:
            assert isinstance(operation, CheckRequest)
        return operation.path

    async def _create(self, asked: CreateRequest) -> str:
        ephemeral, sequential = asked.mode.value
        parent = await self._load(parent_of(asked.path))
        above = _present(parent)
        if above.owner:
            raise ZnodeError(ResultCode.NO_CHILDREN_FOR_EPHEMERALS)
        path = f"{asked.path}{above.created:010d}" if sequential else asked.path
        found = await self._load(path)
        if found.node is not None:
            raise ZnodeError(ResultCode.NODE_EXISTS)
        self._set(
            parent,
            cversion=above.cversion + 1,
            children=above.children + 1,
            created=above.created + 1,
            pzxid=None,
        )
        found.node = StoredZnode(asked.data, self._session if ephemeral else "")
        found.changed = True
        if ephemeral:
            self._ephemerals[_ephemeral_key(self._session, path)] = True
        return path

    async def _delete(self, found: _Loaded, node: StoredZnode) -> None:
        if node.children:
            raise ZnodeError(ResultCode.NOT_EMPTY)
        if found.path == _ROOT:
            raise ZnodeError(ResultCode.BAD_ARGUMENTS)
        parent = await self._load(parent_of(found.path))
        above = _present(parent)
        self._set(parent, cversion=above.cversion + 1, children=above.children - 1, pzxid=None)
        found.node, found.changed = None, True
        if node.owner:
            self._ephemerals[_ephemeral_key(node.owner, found.path)] = False

    def _set(self, found: _Loaded, **fields: object) -> None:
        """Change a node that is there. Zxids that the change doesn't set become numbers."""
        node = _present(found)
        if found.revision is not None and not found.changed:
            node = _settled(node, found.revision)
        found.node = msgspec.structs.replace(node, **fields)
        found.changed = True

    async def _load(self, path: str) -> _Loaded:
        if path not in self._loaded:
            self._loaded[path] = await _fetch(self._storage, path)
        return self._loaded[path]

    async def _commit(self) -> Revision:
        txn = self._storage.txn()
        for found in self._loaded.values():
            _write(txn, found)
        for key, is_made in self._ephemerals.items():
            if is_made:
                txn.upsert(key, b"")
            else:
                txn.delete(key)
        return await txn.commit()

    def _response(self, operation: Operation, path: str, revision: Revision) -> MetastoreResponse:
        found = self._loaded[path]
        name = path if isinstance(operation, CreateRequest) else ""
        stat = None
        if found.node is not None and not isinstance(operation, CheckRequest):
            at = revision if found.changed else found.revision
            stat = _stat(_Loaded(path, found.node, at))
        return MetastoreResponse(ResultCode.OK, operation.path, operation.ctx, name=name, stat=stat)


def _write(txn: Txn, found: _Loaded) -> None:
    """Add a node's condition, and its change if there is one."""
    key = node_key(found.path)
    if not found.changed:
        txn.check(key, "absent" if found.revision is None else found.revision)
    elif found.node is None:
        if found.revision is not None:
            txn.delete(key, expect=found.revision)
    elif found.revision is None:
        txn.put(key, msgspec.msgpack.encode(found.node))
    else:
        txn.update(key, msgspec.msgpack.encode(found.node), expect=found.revision)


def _all_refused(
    operations: Sequence[Operation], index: int, code: ResultCode
) -> list[MetastoreResponse]:
    """Return the responses when one operation is refused, as ZooKeeper gives them."""
    other = ResultCode.RUNTIME_INCONSISTENCY
    return [
        MetastoreResponse(code if n == index else other, operation.path, operation.ctx)
        for n, operation in enumerate(operations)
    ]


async def _fetch(storage: Storage, path: str) -> _Loaded:
    record = await storage.fetch(node_key(path))
    if record is not None:
        node = msgspec.msgpack.decode(record.value, type=StoredZnode)
        return _Loaded(path, node, record.mod_revision)
    # The root is always there, also before anything was written.
    return _Loaded(path, StoredZnode(czxid=0, mzxid=0, pzxid=0) if path == _ROOT else None, None)


def _present(found: _Loaded) -> StoredZnode:
    if found.node is None:
        raise ZnodeError(ResultCode.NO_NODE)
    return found.node


def _settled(node: StoredZnode, revision: Revision) -> StoredZnode:
    return msgspec.structs.replace(
        node,
        czxid=revision if node.czxid is None else node.czxid,
        mzxid=revision if node.mzxid is None else node.mzxid,
        pzxid=revision if node.pzxid is None else node.pzxid,
    )


def _stat(found: _Loaded) -> ZnodeStat:
    node = _settled(_present(found), found.revision or Revision(0))
    assert node.czxid is not None
    assert node.mzxid is not None
    assert node.pzxid is not None
    return ZnodeStat(
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.version,
        node.cversion,
        node.owner,
        len(node.data),
        node.children,
    )


def node_key(path: str) -> str:
    """Return the key of a node. Raises ZnodeError BAD_ARGUMENTS."""
    if path == _ROOT:
        return "n/0"
    parts = path.split("/")
    if parts[0] or not all(parts[1:]) or not {".", ".."}.isdisjoint(parts) or "\0" in path:
        raise ZnodeError(ResultCode.BAD_ARGUMENTS)
    return f"n/{len(parts) - 1}{path}"


def parent_of(path: str) -> str:
    """Return the path of the node above. Raises ZnodeError BAD_ARGUMENTS."""
    node_key(path)
    if path == _ROOT:
        raise ZnodeError(ResultCode.NODE_EXISTS)
    return path.rpartition("/")[0] or _ROOT


def _children_of(path: str) -> str:
    """Return the namespace of a node's children."""
    return "n/1" if path == _ROOT else f"n/{path.count('/') + 1}{path}"


def _ephemeral_key(session: str, path: str) -> str:
    return f"e/{session}/{quote(path, safe='')}"
