"""ZooKeeper under the conformance suite: an ensemble of three servers, with credentials.

ZooKeeper knows no users: who makes a node says who may read it. The suite's first client makes the
root, so whoever shows another password is refused there.
"""

import asyncio
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from kazoo.client import KazooClient

from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from tests.coordination.servers.group_store import GroupStore, started, stepped_clock
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.zookeeper import ZooKeeperServers

_USER = Auth("suite", "secret")


class ZooKeeperStore(GroupStore):
    """What a tester can do to ZooKeeper."""

    name = "zookeeper"
    servers: ZooKeeperServers
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.ISOLATE,
            Ability.STEP_CLOCK,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
            Ability.CREDENTIALS,
        }
    )
    lacks: Mapping[Ability, str] = {Ability.COMPACT: "ZooKeeper keeps no history"}

    def url(self, addresses: Sequence[Address]) -> str:
        user = f"{_USER.username}:{_USER.password}"
        return f"zookeeper://{user}@{','.join(map(str, addresses))}/suite"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth(_USER.username, "guess")}

    async def now_revision(self) -> Revision:
        return Revision(await asyncio.to_thread(self._zxid))

    def _zxid(self) -> int:
        told = [self.servers.ask(n, b"srvr") for n in range(len(self.addresses))]
        lines = [line for words in told for line in words.splitlines()]
        return max(int(line.split()[1], 16) for line in lines if line.startswith("Zxid:"))

    async def expire(self, session: SessionId) -> None:
        """End a session by a second connection to it, which says goodbye."""
        number = int(session, 16)
        number -= 2**64 if number >= 2**63 else 0
        hosts = ",".join(map(str, self.addresses))

        def end() -> None:
            client = KazooClient(hosts, client_id=(number, password_of(number)))
            client.start(10)
            client.stop()
            client.close()

        await asyncio.to_thread(end)

    def lonely(self, leader: int) -> int:
        """Cut a follower off: a lonely leader would be elected again.

        For elections the servers tell each other where they listen, past any proxy.
        """
        return (leader + 1) % len(self.addresses)

    async def watches(self) -> int:
        return await asyncio.to_thread(self.servers.watches)


def password_of(session: int) -> bytes:
    """Return the password that ZooKeeper gives a session: its number seeds java.util.Random.

    Source: ZooKeeperServer.generatePasswd.
    """
    state = ((session ^ 0xB3415C00) ^ 0x5DEECE66D) % 2**48
    made = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        made += struct.pack("<I", state >> 16)
    return made


def _configured(folder: Path) -> GroupStore:
    gate = PeerGate()
    store = ZooKeeperStore(ZooKeeperServers(folder / "three", 3, gate=gate))
    store.gate = gate
    stepped_clock(folder, store)
    return store


def open_store() -> AbstractAsyncContextManager[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    return started("zookeeper", _configured)
