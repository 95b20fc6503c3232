"""ZooKeeper and Cassandra as the conformance suite takes them, with what a tester can do to them.

Rule: a store's `start` begins its servers, `stop` ends them. What can't be done to a server isn't
among its abilities, and the matrix says so.
"""

import asyncio
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from tests.coordination.servers.cassandra import CassandraServer
from tests.coordination.servers.zookeeper import ZooKeeperServers


def _addresses(endpoints: Sequence[str]) -> list[Address]:
    parts = [endpoint.split(":") for endpoint in endpoints]
    return [Address(host, int(port)) for host, port in parts]


class ZooKeeperStore(TcpStore):
    """An ensemble of three."""

    name = "zookeeper"
    ttl = 2.0
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.SEVERAL_ENDPOINTS,
            Ability.OTHER_PROCESS,
            Ability.CREDENTIALS,
            Ability.COUNT_WATCHES,
        }
    )

    def __init__(self, folder: Path) -> None:
        """Raises NoToolError."""
        super().__init__()
        self._servers = ZooKeeperServers(folder, 3)
        self.addresses = _addresses(self._servers.endpoints)
        self._user = Auth("suite", "secret")

    def start(self) -> None:
        self._servers.start()

    def stop(self) -> None:
        self._servers.stop()

    def url(self, addresses: Sequence[Address]) -> str:
        hosts = ",".join(map(str, addresses))
        return f"zookeeper://{self._user.username}:{self._user.password}@{hosts}/suite"

    def wrong_credentials(self) -> Mapping[str, Any]:
        return {"auth": Auth(self._user.username, "wrong")}

    async def now_revision(self) -> Revision:
        modes = [self._servers.ask(n, b"srvr") for n in range(len(self.addresses))]
        zxids = [line for mode in modes for line in mode.splitlines() if line.startswith("Zxid:")]
        return Revision(max(int(line.split()[1], 16) for line in zxids))

    async def expire(self, session: SessionId) -> None:
        """End a session with its own password, which ZooKeeper makes from its number."""
        number = int(session, 16)
        number -= 2**64 if number >= 2**63 else 0
        hosts = ",".join(map(str, self.addresses))

        def end() -> None:
            client = KazooClient(hosts, client_id=(number, _password(number)))
            client.start(10)
            client.stop()
            client.close()

        await asyncio.to_thread(end)

    async def restart(self) -> None:
        self._servers.kill()
        await asyncio.to_thread(self._servers.start)

    async def watches(self) -> int:
        return self._servers.watches()

    async def failover(self) -> None:
        killed = self._servers.leader()
        self._servers.children[killed].kill()
        await asyncio.to_thread(self._servers.wait_for_leader)

    async def repair(self) -> None:
        await asyncio.to_thread(self._servers.start)


def _password(session: int) -> bytes:
    """As ZooKeeperServer.generatePasswd, over java.util.Random."""
    state = ((session ^ 0xB3415C00) ^ 0x5DEECE66D) % 2**48
    made = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        made += struct.pack("<I", state >> 16)
    return made


class CassandraStore(TcpStore):
    """One node."""

    name = "cassandra"
    ttl = 4.0
    request_timeout = 4.0
    abilities = frozenset(
        {Ability.CUT, Ability.RESTART, Ability.OTHER_PROCESS, Ability.CREDENTIALS}
    )

    def __init__(self, folder: Path) -> None:
        """Raises NoToolError."""
        super().__init__()
        self._server = CassandraServer(folder)
        self.addresses = _addresses(self._server.endpoints)

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def url(self, addresses: Sequence[Address]) -> str:
        user = self._server.user
        assert user is not None, "Cassandra asks for credentials"
        hosts = ",".join(map(str, addresses))
        return f"cassandra://{user.username}:{user.password}@{hosts}/suite"

    def wrong_credentials(self) -> Mapping[str, Any]:
        return {"auth": Auth("cassandra", "wrong")}

    async def restart(self) -> None:
        self._server.kill()
        await asyncio.to_thread(self._server.start)
