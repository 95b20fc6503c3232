"""The stores that keys are imported from, each as a real server: how a test writes to them.

Rule: a test has a place of its own in the store: a prefix, a root, a chroot or a keyspace. So tests
share servers. Plain keys are written by the store's own means, the library's by `connect`.
"""

import contextlib
import urllib.request
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import msgspec
from kazoo.client import KazooClient

from coordination.connect import connect
from tests.coordination.servers.cassandra import CassandraServer
from tests.coordination.servers.consul_servers import TOKEN, ConsulServers
from tests.coordination.servers.etcd_servers import EtcdServers
from tests.coordination.servers.zookeeper import ZooKeeperServers

BAD_NAME = "config/\u202ebad"
"""A name that no key of the quorum has: it turns the direction of writing."""


class ImportedStore(Protocol):
    """One store, with keys of any program or of the library."""

    def arguments(self, place: str) -> list[str]:
        """Return what stands after `logberg import`."""

    async def make(self, place: str) -> None:
        """Make an empty place."""

    async def write(self, place: str, keys: Mapping[str, bytes]) -> None:
        """Set keys, all at once."""

    def hold(self, place: str) -> AbstractAsyncContextManager[None]:
        """Within it a session has an entry or a key, `mine`."""

    async def spoil(self, place: str) -> None:
        """Write something that can't be a key of the quorum."""

    async def mend(self, place: str) -> None:
        """Remove it."""


class PlainEtcd:
    """Any program's keys in etcd."""

    def __init__(self, servers: EtcdServers) -> None:
        self._servers = servers

    def arguments(self, place: str) -> list[str]:
        return ["etcd", f"etcd+http://{self._servers.endpoints[0]}", "--prefix", f"{place}/"]

    async def make(self, place: str) -> None:
        """There is nothing to make."""

    async def write(self, place: str, keys: Mapping[str, bytes]) -> None:
        puts = [
            {"requestPut": {"key": _text(f"{place}/{key}"), "value": _text(value)}}
            for key, value in keys.items()
        ]
        self._ask("/v3/kv/txn", {"success": puts})

    @asynccontextmanager
    async def hold(self, place: str) -> AsyncIterator[None]:
        lease = self._ask("/v3/lease/grant", {"TTL": "60"})["ID"]
        self._ask("/v3/kv/put", {"key": _text(f"{place}/mine"), "lease": lease})
        yield
        self._ask("/v3/lease/revoke", {"ID": lease})

    async def spoil(self, place: str) -> None:
        self._ask("/v3/kv/put", {"key": _text(f"{place}/config/".encode() + b"\xff"), "value": ""})

    async def mend(self, place: str) -> None:
        self._ask("/v3/kv/deleterange", {"key": _text(f"{place}/config/".encode() + b"\xff")})

    def _ask(self, path: str, request: dict) -> dict:
        reply = self._servers.ask(0, path, request)
        assert reply is not None, path
        return reply


class PlainConsul:
    """Any program's keys in Consul."""

    def __init__(self, servers: ConsulServers) -> None:
        self._servers = servers

    def arguments(self, place: str) -> list[str]:
        url = f"consul+http://:{TOKEN}@{self._servers.endpoints[0]}"
        return ["consul", url, "--prefix", f"{place}/"]

    async def make(self, place: str) -> None:
        """There is nothing to make."""

    async def write(self, place: str, keys: Mapping[str, bytes]) -> None:
        steps = [
            {"KV": {"Verb": "set", "Key": f"{place}/{key}", "Value": _text(value)}}
            for key, value in keys.items()
        ]
        self._send("/v1/txn", msgspec.json.encode(steps))

    @asynccontextmanager
    async def hold(self, place: str) -> AsyncIterator[None]:
        session = self._servers.ask(0, "PUT", "/v1/session/create")["ID"]
        self._put(f"{place}/mine", b"", f"?acquire={session}")
        yield
        self._servers.ask(0, "PUT", f"/v1/session/destroy/{session}")

    async def spoil(self, place: str) -> None:
        # Consul takes no such name in a URL.
        await self.write(place, {BAD_NAME: b""})

    async def mend(self, place: str) -> None:
        step = {"KV": {"Verb": "delete", "Key": f"{place}/{BAD_NAME}"}}
        self._send("/v1/txn", msgspec.json.encode([step]))

    def _put(self, key: str, value: bytes, query: str = "") -> None:
        self._send(f"/v1/kv/{quote(key)}{query}", value)

    def _send(self, path: str, content: bytes) -> None:
        url = f"http://{self._servers.endpoints[0]}{path}"
        asked = urllib.request.Request(url, content, {"X-Consul-Token": TOKEN}, method="PUT")
        with urllib.request.urlopen(asked, timeout=5) as answer:
            assert answer.status == 200


class PlainZooKeeper:
    """Any program's nodes in ZooKeeper."""

    def __init__(self, servers: ZooKeeperServers) -> None:
        self._servers = servers

    def arguments(self, place: str) -> list[str]:
        url = f"zookeeper://{self._servers.endpoints[0]}/{place}"
        return ["zookeeper", url, "--layout", "plain"]

    async def make(self, place: str) -> None:
        with self._client() as client:
            client.ensure_path(place)

    async def write(self, place: str, keys: Mapping[str, bytes]) -> None:
        with self._client() as client:
            client.ensure_path(place)
            for key in keys:
                client.ensure_path(f"{place}/{key}")
            change = client.transaction()
            for key, value in keys.items():
                change.set_data(f"{place}/{key}", value)
            change.commit()

    @asynccontextmanager
    async def hold(self, place: str) -> AsyncIterator[None]:
        with self._client() as client:
            client.create(f"{place}/mine", b"", ephemeral=True, makepath=True)
            yield

    async def spoil(self, place: str) -> None:
        with self._client() as client:
            client.create(f"{place}/{BAD_NAME}", b"1", makepath=True)

    async def mend(self, place: str) -> None:
        with self._client() as client:
            client.delete(f"{place}/{BAD_NAME}")

    @contextmanager
    def _client(self) -> Iterator[KazooClient]:
        client = KazooClient(hosts=self._servers.endpoints[0], timeout=10)
        client.start(20)
        try:
            yield client
        finally:
            client.stop()
            client.close()


class LibraryKeys:
    """Keys of this library's client, in any store; `plain` writes what the client never would."""

    layout: tuple[str, ...] = ("--layout", "logberg")

    def __init__(self, command: str, url: str, plain: "SpoilsPlace") -> None:
        """`url` has `{}` for the place."""
        self._command = command
        self._url = url
        self._plain = plain

    def arguments(self, place: str) -> list[str]:
        return [self._command, self._url.format(place), *self.layout]

    async def make(self, place: str) -> None:
        async with connect(self._url.format(place), request_timeout=20.0) as client:
            await client.storage.upsert("config/nothing", b"")
            await client.storage.delete("config/nothing")

    async def write(self, place: str, keys: Mapping[str, bytes]) -> None:
        async with connect(self._url.format(place), request_timeout=20.0) as client:
            # Cassandra changes keys together only below one first part of their names.
            for first in sorted({key.partition("/")[0] for key in keys}):
                change = client.storage.txn()
                for key, value in keys.items():
                    if key.partition("/")[0] == first:
                        change.upsert(key, value)
                await change.commit()

    @asynccontextmanager
    async def hold(self, place: str) -> AsyncIterator[None]:
        async with (
            connect(self._url.format(place), request_timeout=20.0) as client,
            client.lock("mine")() as grant,
        ):
            assert grant.token > 0
            yield

    async def spoil(self, place: str) -> None:
        await self._plain.spoil_library(place)

    async def mend(self, place: str) -> None:
        await self._plain.mend_library(place)


class SpoilsPlace(Protocol):
    """Writes below the root of the library's client what that client never would."""

    async def spoil_library(self, place: str) -> None: ...

    async def mend_library(self, place: str) -> None: ...


class EtcdBelow(PlainEtcd):
    """The library's root in etcd."""

    async def spoil_library(self, place: str) -> None:
        await self.spoil(f"{place}/keys")

    async def mend_library(self, place: str) -> None:
        await self.mend(f"{place}/keys")


class ConsulBelow(PlainConsul):
    """The library's root in Consul: a name that isn't escaped."""

    async def spoil_library(self, place: str) -> None:
        await self.spoil(f"{place}/keys")

    async def mend_library(self, place: str) -> None:
        await self.mend(f"{place}/keys")


class ZooKeeperBelow(PlainZooKeeper):
    """The library's root in ZooKeeper: a node that isn't encoded, three levels deep."""

    async def spoil_library(self, place: str) -> None:
        await self.spoil(f"{place}/keys")

    async def mend_library(self, place: str) -> None:
        with self._client() as client:
            client.delete(f"{place}/keys/config", recursive=True)


class CassandraTables:
    """The library's tables: a row whose key is no UTF-8."""

    def __init__(self, server: CassandraServer) -> None:
        self._port = server.port

    async def spoil_library(self, place: str) -> None:
        self._run(
            f"INSERT INTO {place}.spaces (space, kind, resource, id, modified) "
            "VALUES ('config/', 'k', '', 0xff, 1)"
        )

    async def mend_library(self, place: str) -> None:
        self._run(
            f"DELETE FROM {place}.spaces WHERE space = 'config/' AND kind = 'k' AND resource = '' "
            "AND id = 0xff"
        )

    def _run(self, statement: str) -> None:
        from cassandra.auth import PlainTextAuthProvider  # noqa: PLC0415 - an extra
        from cassandra.cluster import Cluster  # noqa: PLC0415

        login = PlainTextAuthProvider("cassandra", "cassandra")
        cluster = Cluster(["127.0.0.1"], port=self._port, auth_provider=login)
        with contextlib.closing(_Shut(cluster)):
            cluster.connect().execute(statement)


class _Shut:
    def __init__(self, cluster) -> None:
        self.close = cluster.shutdown


class RealStores:
    """The servers, each started when the first test asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict = {}

    def get(self, label: str) -> ImportedStore:
        """Return a store by its label in `LABELS`. Raises NoToolError."""
        make, _, layout = label.partition(" ")
        servers = self._started(make)
        if make == "etcd":
            url = f"etcd+http://{servers.endpoints[0]}/{{}}"
            below = EtcdBelow(servers)
        elif make == "consul":
            url = f"consul+http://:{TOKEN}@{servers.endpoints[0]}/{{}}?min_ttl=2"
            below = ConsulBelow(servers)
        elif make == "zookeeper":
            url = f"zookeeper://{servers.endpoints[0]}/{{}}"
            below = ZooKeeperBelow(servers)
        else:
            url = f"cassandra://cassandra:cassandra@{servers.endpoints[0]}/{{}}"
            library = LibraryKeys(make, url, CassandraTables(servers))
            library.layout = ()
            return library
        return below if layout == "plain" else LibraryKeys(make, url, below)

    def stop(self) -> None:
        for servers in self._servers.values():
            servers.stop()

    def _started(self, make: str):
        if make not in self._servers:
            self._servers[make] = KINDS[make](self._folder / make)
            self._servers[make].start()
        return self._servers[make]


KINDS = {
    "etcd": EtcdServers,
    "consul": ConsulServers,
    "zookeeper": ZooKeeperServers,
    "cassandra": CassandraServer,
}
LABELS = (
    "etcd plain",
    "etcd library",
    "consul plain",
    "consul library",
    "zookeeper plain",
    "zookeeper library",
    "cassandra library",
)


def _text(data: str | bytes) -> str:
    return b64encode(data.encode() if isinstance(data, str) else data).decode()
