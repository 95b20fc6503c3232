"""Consul under the conformance suite: three servers that let nobody in without a token."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.peers.tools import NoToolError
from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, CannotStartError, TcpStore
from coordination.types import Revision, SessionId
from tests.coordination.servers.consul_servers import TOKEN, ConsulServers
from tests.coordination.servers.tier import not_run_reason


class ConsulStore(TcpStore):
    """What a tester can do to Consul."""

    name = "consul"
    # These servers allow less than Consul's ten seconds, and the URL says so. An election takes
    # some seconds on a busy machine, and a session should survive it.
    ttl = 6.0
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.SEVERAL_ENDPOINTS,
            Ability.CREDENTIALS,
        }
    )

    def __init__(self, servers: ConsulServers) -> None:
        super().__init__()
        self._servers = servers
        self.addresses = [Address("127.0.0.1", port) for port in servers.ports]

    def url(self, addresses: Sequence[Address]) -> str:
        hosts = ",".join(map(str, addresses))
        return f"consul+http://:{TOKEN}@{hosts}/suite?min_ttl=2"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth(token="5ec7e7aa-0000-4000-8000-000000000002")}

    async def now_revision(self) -> Revision:
        return Revision(await asyncio.to_thread(self._servers.revision))

    async def expire(self, session: SessionId) -> None:
        path = f"/v1/session/destroy/{session}"
        for n in range(len(self.addresses)):
            if await asyncio.to_thread(self._servers.ask, n, "PUT", path):
                return
        raise RuntimeError("no server of Consul ends the session")

    async def restart(self) -> None:
        def kill_and_start() -> None:
            for n in range(len(self.addresses)):
                self._servers.kill(n)
            self._servers.start()

        await asyncio.to_thread(kill_and_start)

    async def failover(self) -> None:
        def kill_leader() -> None:
            self._servers.kill(self._servers.leader())
            self._servers.leader()

        await asyncio.to_thread(kill_leader)

    async def repair(self) -> None:
        await asyncio.to_thread(self._servers.start)


@asynccontextmanager
async def open_store() -> AsyncIterator[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    if (reason := not_run_reason()) is not None:
        raise CannotStartError(reason)
    with tempfile.TemporaryDirectory(prefix="logberg-consul-") as folder:
        try:
            servers = ConsulServers(Path(folder) / "three", 3)
        except NoToolError as error:
            raise CannotStartError(str(error)) from None
        try:
            await asyncio.to_thread(servers.start)
            yield ConsulStore(servers)
        finally:
            await asyncio.to_thread(servers.stop)
