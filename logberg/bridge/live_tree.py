"""A tree of ZooKeeper's nodes that is kept up to date by watches: it reads again what changed.

Why a tree is consistent: a session gets the event of a watch before it sees what was written after
that change. So when all that changed has been read, and no event came by the end of the last
reading, then every node is as it was at the zxid of the last answer.

When a connection is lost, its watches are gone, and the whole tree is read anew.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from logberg.importing.source_error import SourceError
from logberg.importing.znodes import Znode, ZnodeTree
from logberg.importing.zookeeper_source import KazooModules, ZooKeeperRead

_AT_ONCE: Final = 200
"""Nodes that are asked for without waiting."""
_ROUNDS_MAX: Final = 1_000
"""So often it reads what changed while it read."""
_OWN: Final = "zookeeper"


class _Read(NamedTuple):
    """A node and the names below it."""

    node: Znode
    names: frozenset[str]


class LostConnectionError(SourceError):
    """ZooKeeper doesn't answer. Its client tries to connect again by itself."""


class LiveTree:
    """The nodes below one path. One thread uses it; kazoo's calls its watches."""

    def __init__(self, client: Any, kazoo: KazooModules, root: str, timeout_s: float) -> None:
        """`root`: what stands before each path; empty at the server's root."""
        self._client = client
        self._kazoo = kazoo
        self._root = root
        self._timeout_s = timeout_s
        self._known: dict[str, _Read] = {}
        self._watches: dict[str, Callable[[Any], None]] = {}
        self._lock = threading.Lock()
        self._changed = {""}
        self._news = threading.Event()
        self._news.set()
        client.add_listener(self._on_state)

    def _on_state(self, state: str) -> None:
        if state != "CONNECTED":
            self._mark("")

    def _mark(self, path: str) -> None:
        with self._lock:
            self._changed.add(path)
        self._news.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until something has changed. Returns whether it has."""
        return self._news.wait(timeout_s)

    def settled(self) -> ZooKeeperRead:
        """Read again what changed; return the tree as it was at one zxid. Raises SourceError."""
        exceptions = self._kazoo.exceptions
        try:
            for _ in range(_ROUNDS_MAX):
                self._client.sync_async(self._root or "/").get(timeout=self._timeout_s)
                self._flush()
                with self._lock:
                    paths, self._changed = self._changed, set()
                    self._news.clear()
                if not paths:
                    tree = ZnodeTree(each.node for path, each in self._known.items() if path)
                    return ZooKeeperRead(tree, int(self._client.last_zxid))
                if "" in paths:
                    self._known.clear()
                self._read(paths)
        except (exceptions.KazooException, self._kazoo.timeout) as error:
            self._mark("")
            raise LostConnectionError(f"the connection was lost: {type(error).__name__}") from None
        raise SourceError("the source changes faster than it can be read")

    def _flush(self) -> None:
        """Wait until the events that have arrived are noted."""
        noted = threading.Event()
        self._client.handler.dispatch_callback(
            self._kazoo.callback("watch", lambda *_: noted.set(), ())
        )
        if not noted.wait(self._timeout_s):
            raise self._kazoo.timeout

    def _read(self, paths: Iterable[str]) -> None:
        """Read nodes and, below them, those that aren't known."""
        level = sorted(paths)
        while level:
            below: list[str] = []
            for start in range(0, len(level), _AT_ONCE):
                asked = [(path, *self._ask(path)) for path in level[start : start + _AT_ONCE]]
                for path, data, children in asked:
                    below += self._take(path, data, children)
            level = below

    def _ask(self, path: str) -> tuple[Any, Any]:
        whole = self._root + path or "/"
        # A set of kazoo's holds the watches of a path: one object for a path counts once.
        on_event = self._watches.setdefault(path, lambda _event: self._mark(path))
        return (
            self._client.get_async(whole, watch=on_event),
            self._client.get_children_async(whole, watch=on_event, include_data=True),
        )

    def _take(self, path: str, data: Any, children: Any) -> list[str]:
        """Note a node, forget what is no more below it, and return the paths to read next."""
        try:
            value, stat = data.get(timeout=self._timeout_s)
            listed, below = children.get(timeout=self._timeout_s)
        except self._kazoo.exceptions.NoNodeError:
            self._forget(path)
            if not path:
                raise SourceError(f"{self._root or '/'}: there is no such node") from None
            return []
        except self._kazoo.exceptions.NoAuthError:
            raise SourceError(
                f"{path}: these credentials may not read it; give those of Kafka in the URL, as "
                "zookeeper://user:password@host"
            ) from None
        names = frozenset(listed) - ({_OWN} if not path and not self._root else set())
        node = Znode(
            path,
            value or b"",
            stat.version,
            stat.czxid,
            stat.mzxid,
            below.pzxid,
            bool(stat.ephemeralOwner),
        )
        before = self._known.get(path)
        self._known[path] = _Read(node, names)
        for name in () if before is None else before.names - names:
            self._forget(f"{path}/{name}")
        return [f"{path}/{name}" for name in sorted(names) if f"{path}/{name}" not in self._known]

    def _forget(self, path: str) -> None:
        found = self._known.pop(path, None)
        self._watches.pop(path, None)
        for name in () if found is None else found.names:
            self._forget(f"{path}/{name}")
