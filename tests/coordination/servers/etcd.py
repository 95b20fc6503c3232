"""etcd under the conformance suite: three servers, with logins."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from tests.coordination.servers.etcd_servers import EtcdServers
from tests.coordination.servers.group_store import GroupStore, started
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.wall_clock import GO_READS_THE_KERNELS_CLOCK

_PASSWORD = "secret"


class EtcdStore(GroupStore):
    """What a tester can do to etcd."""

    name = "etcd"
    servers: EtcdServers
    # An election of etcd takes up to 2 s, and a session should survive it.
    ttl = 4.0
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.ISOLATE,
            Ability.COMPACT,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
            Ability.CREDENTIALS,
        }
    )
    lacks: Mapping[Ability, str] = {Ability.STEP_CLOCK: GO_READS_THE_KERNELS_CLOCK}

    async def prepare(self) -> None:
        await asyncio.to_thread(self.servers.ask_for_logins, _PASSWORD)

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
        return await asyncio.to_thread(self.servers.watches)

    async def _ask(self, path: str, request: dict) -> dict:
        """Ask the servers in turn until one answers."""
        for n in range(len(self.addresses)):
            reply = await asyncio.to_thread(self.servers.ask, n, path, request, 5.0)
            if reply is not None:
                return reply
        raise RuntimeError(f"no server of etcd answers {path}")


def _configured(folder: Path) -> GroupStore:
    gate = PeerGate()
    store = EtcdStore(EtcdServers(folder / "three", 3, gate))
    store.gate = gate
    return store


def open_store() -> AbstractAsyncContextManager[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    return started("etcd", _configured)
