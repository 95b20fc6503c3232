"""ZooKeeper under the conformance suite: an ensemble of three servers.

A ZooKeeper server ends no session before its ttl for somebody who lacks the session's password, and
has no history to forget. So the tester can't expire a session here.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.peers.tools import NoToolError
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, CannotStartError, TcpStore
from coordination.types import Revision
from tests.coordination.servers.tier import not_run_reason
from tests.coordination.servers.zookeeper import ZooKeeperServers


class ZooKeeperStore(TcpStore):
    """What a tester can do to ZooKeeper."""

    name = "zookeeper"
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
        }
    )

    def __init__(self, servers: ZooKeeperServers) -> None:
        super().__init__()
        self._servers = servers
        self.addresses = [Address("127.0.0.1", port) for port in servers.ports]

    def url(self, addresses: Sequence[Address]) -> str:
        return f"zookeeper://{','.join(map(str, addresses))}/suite"

    async def now_revision(self) -> Revision:
        return Revision(await asyncio.to_thread(self._zxid))

    def _zxid(self) -> int:
        told = [self._servers.ask(n, b"srvr") for n in range(len(self.addresses))]
        lines = [line for words in told for line in words.splitlines()]
        return max(int(line.split()[1], 16) for line in lines if line.startswith("Zxid:"))

    async def watches(self) -> int:
        return await asyncio.to_thread(self._servers.watches)

    async def restart(self) -> None:
        await asyncio.to_thread(self._servers.kill)
        await asyncio.to_thread(self._servers.start)

    async def failover(self) -> None:
        await asyncio.to_thread(self._kill_leader)

    def _kill_leader(self) -> None:
        self._servers.children[self._servers.leader()].kill()
        while True:
            try:
                self._servers.leader()
            except StopIteration:
                continue
            return

    async def repair(self) -> None:
        await asyncio.to_thread(self._servers.start)


@asynccontextmanager
async def open_store() -> AsyncIterator[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    if (reason := not_run_reason()) is not None:
        raise CannotStartError(reason)
    with tempfile.TemporaryDirectory(prefix="logberg-zookeeper-") as folder:
        try:
            servers = ZooKeeperServers(Path(folder) / "three", 3)
        except NoToolError as error:
            raise CannotStartError(str(error)) from None
        try:
            await asyncio.to_thread(servers.start)
            yield ZooKeeperStore(servers)
        finally:
            await asyncio.to_thread(servers.stop)
