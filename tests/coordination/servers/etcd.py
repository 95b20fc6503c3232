"""etcd under the conformance suite: three servers, with logins."""

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
from tests.coordination.servers.etcd_servers import EtcdServers
from tests.coordination.servers.tier import not_run_reason

_PASSWORD = "secret"


class EtcdStore(TcpStore):
    """What a tester can do to etcd."""

    name = "etcd"
    # An election of etcd takes up to 2 s, and a session should survive it.
    ttl = 4.0
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.COMPACT,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
            Ability.CREDENTIALS,
        }
    )

    def __init__(self, servers: EtcdServers) -> None:
        super().__init__()
        self._servers = servers
        self.addresses = [Address("127.0.0.1", port) for port in servers.ports]

    def url(self, addresses: Sequence[Address]) -> str:
        hosts = ",".join(map(str, addresses))
        return f"etcd+http://root:{_PASSWORD}@{hosts}/suite"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth("root", "guess")}

    async def now_revision(self) -> Revision:
        reply = await self._ask("/v3/kv/range", {"key": "AA==", "keys_only": True})
        return Revision(int(reply["header"]["revision"]))

    async def expire(self, session: SessionId) -> None:
        await self._ask("/v3/lease/revoke", {"ID": str(int(session, 16))})

    async def compact(self, revision: Revision) -> None:
        await self._ask("/v3/kv/compaction", {"revision": str(revision)})

    async def watches(self) -> int:
        return await asyncio.to_thread(self._servers.watches)

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

    async def _ask(self, path: str, request: dict) -> dict:
        """Ask the servers in turn until one answers."""
        for n in range(len(self.addresses)):
            reply = await asyncio.to_thread(self._servers.ask, n, path, request, 5.0)
            if reply is not None:
                return reply
        raise RuntimeError(f"no server of etcd answers {path}")


@asynccontextmanager
async def open_store() -> AsyncIterator[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    if (reason := not_run_reason()) is not None:
        raise CannotStartError(reason)
    with tempfile.TemporaryDirectory(prefix="logberg-etcd-") as folder:
        try:
            servers = EtcdServers(Path(folder) / "three", 3)
        except NoToolError as error:
            raise CannotStartError(str(error)) from None
        try:
            await asyncio.to_thread(servers.start)
            await asyncio.to_thread(servers.ask_for_logins, _PASSWORD)
            yield EtcdStore(servers)
        finally:
            await asyncio.to_thread(servers.stop)
