"""Consul under the conformance suite: three servers that let nobody in without a token."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from tests.coordination.servers.consul_servers import TOKEN, ConsulServers
from tests.coordination.servers.group_store import GroupStore, started
from tests.coordination.servers.wall_clock import GO_READS_THE_KERNELS_CLOCK


class ConsulStore(GroupStore):
    """What a tester can do to Consul."""

    name = "consul"
    servers: ConsulServers
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
    lacks: Mapping[Ability, str] = {
        Ability.STEP_CLOCK: GO_READS_THE_KERNELS_CLOCK,
        Ability.ISOLATE: "a server tells the others the port that it listens on, so that no proxy "
        "fits between them",
        Ability.COMPACT: "Consul keeps no history",
        Ability.COUNT_WATCHES: "Consul has no watches, only reads that it holds, and counts none",
    }

    def url(self, addresses: Sequence[Address]) -> str:
        hosts = ",".join(map(str, addresses))
        return f"consul+http://:{TOKEN}@{hosts}/suite?min_ttl=2"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth(token="5ec7e7aa-0000-4000-8000-000000000002")}

    async def now_revision(self) -> Revision:
        return Revision(await asyncio.to_thread(self.servers.revision))

    async def expire(self, session: SessionId) -> None:
        path = f"/v1/session/destroy/{session}"
        for n in range(len(self.addresses)):
            if await asyncio.to_thread(self.servers.ask, n, "PUT", path):
                return
        raise RuntimeError("no server of Consul ends the session")


def open_store() -> AbstractAsyncContextManager[TcpStore]:
    """Start three servers for the suite. Raises CannotStartError."""
    return started("consul", lambda folder: ConsulStore(ConsulServers(folder / "three", 3)))
