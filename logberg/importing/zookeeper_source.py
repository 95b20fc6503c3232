"""Reads a tree of nodes from ZooKeeper (kazoo), consistently, and writes nothing there.

ZooKeeper has no reading of many nodes at one moment. So the tree is read until two readings in a
row are equal (`unchanged`). The revision is the zxid that the server had reached after the last.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from coordination.connect import ParsedUrl, parse_url
from coordination.errors import ConfigError
from logberg.importing.source_error import SourceError
from logberg.importing.unchanged import read_unchanged
from logberg.importing.znodes import Znode, ZnodeTree

_AT_ONCE: Final = 200
"""Nodes that are asked for without waiting."""
_READINGS_MAX: Final = 10
_OWN: Final = "zookeeper"
"""ZooKeeper's own nodes lie below it, at the root of the server."""
_DEFAULT_PORT: Final = 2181


class ZooKeeperRead(NamedTuple):
    """What was read, and at which revision."""

    tree: ZnodeTree
    zxid: int


class ZooKeeperSource:
    """The nodes below one path of an ensemble."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """`url`: zookeeper://[user:password@]host:port,…/path. Raises SourceError."""
        self._url = _checked(url)
        self._timeout_s = timeout_s
        self.root = f"/{self._url.path}".rstrip("/")
        """What stands before each path; empty at the server's root."""
        self.name = f"zookeeper://{','.join(self._url.endpoints)}/{self._url.path}".rstrip("/")
        """The URL without credentials."""

    def read(self) -> ZooKeeperRead:
        """Read all nodes. Raises SourceError."""
        with self.session() as (client, zk):
            try:
                client.sync(self.root or "/")
                nodes = read_unchanged(lambda: self._walk(client, zk), _READINGS_MAX)
                return ZooKeeperRead(ZnodeTree(nodes), int(client.last_zxid))
            except zk.exceptions.NoNodeError:
                raise SourceError(f"{self.name}: there is no such node") from None
            except zk.exceptions.NoAuthError:
                raise SourceError(f"{self.name}: the root may not be read") from None
            except (zk.exceptions.KazooException, zk.timeout) as error:
                raise SourceError(
                    f"{self.name}: the connection was lost: {type(error).__name__}"
                ) from None

    @contextmanager
    def session(self) -> Iterator[tuple[Any, "KazooModules"]]:
        """Connect, and end the session in any case. Raises SourceError."""
        zk = _kazoo()
        auth = self._url.auth
        digest = None if auth is None else {("digest", f"{auth.username}:{auth.password}")}
        hosts = ",".join(_with_port(each) for each in self._url.endpoints)
        # A chroot of kazoo's own would warn about one that isn't there; `_walk` refuses it.
        client = zk.client(hosts=hosts, timeout=self._timeout_s, auth_data=digest)
        try:
            client.start(self._timeout_s)
        except (zk.timeout, zk.exceptions.KazooException):
            raise SourceError(
                f"{self.name}: no server answered within {self._timeout_s:g} s"
            ) from None
        else:
            yield client, zk
        finally:
            client.stop()
            client.close()

    def _walk(self, client: Any, zk: Any) -> Sequence[Znode]:
        """Read all nodes once, level by level. A node that vanishes meanwhile is left out."""
        nodes: list[Znode] = []
        level = [""]
        client.get_children(self.root or "/")  # Raises NoNodeError: it isn't an empty source.
        while level:
            below: list[str] = []
            for start in range(0, len(level), _AT_ONCE):
                asked = []
                for path in level[start : start + _AT_ONCE]:
                    whole = self.root + path or "/"
                    children = client.get_children_async(whole, include_data=True)
                    asked.append((path, client.get_async(whole), children))
                for path, data, children in asked:
                    self._take(path, data, children, zk, nodes, below)
            level = below
        return sorted(nodes)

    def _take(
        self, path: str, data: Any, children: Any, zk: Any, nodes: list[Znode], below: list[str]
    ) -> None:
        try:
            value, stat = data.get(timeout=self._timeout_s)
            names, listed = children.get(timeout=self._timeout_s)
        except zk.exceptions.NoNodeError:
            return
        except zk.exceptions.NoAuthError:
            raise SourceError(
                f"{path}: these credentials may not read it; give those of Kafka in the URL, as "
                "zookeeper://user:password@host"
            ) from None
        if path:
            nodes.append(
                Znode(
                    path,
                    value or b"",
                    stat.version,
                    stat.czxid,
                    stat.mzxid,
                    listed.pzxid,
                    bool(stat.ephemeralOwner),
                )
            )
        at_root = not path and not self.root
        below += (f"{path}/{name}" for name in names if not (at_root and name == _OWN))


class KazooModules(NamedTuple):
    """What is used of kazoo, which is an extra."""

    client: Any
    exceptions: Any
    timeout: type[Exception]
    callback: Any


def _kazoo() -> KazooModules:
    try:
        from kazoo import exceptions  # noqa: PLC0415 - an extra
        from kazoo.client import KazooClient  # noqa: PLC0415
        from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415
        from kazoo.protocol.states import Callback  # noqa: PLC0415
    except ImportError:
        raise SourceError("install logberg[zookeeper] for an import from ZooKeeper") from None
    return KazooModules(KazooClient, exceptions, KazooTimeoutError, Callback)


def _checked(url: str) -> ParsedUrl:
    try:
        parsed = parse_url(url, None, {})
    except ConfigError as error:
        raise SourceError(str(error)) from None
    if parsed.scheme != "zookeeper" or not parsed.endpoints:
        raise SourceError("the source is zookeeper://host:port,host:port/path")
    if parsed.options:
        raise SourceError(f"unknown options: {', '.join(sorted(parsed.options))}")
    return parsed


def _with_port(endpoint: str) -> str:
    return endpoint if ":" in endpoint.rpartition("]")[2] else f"{endpoint}:{_DEFAULT_PORT}"
