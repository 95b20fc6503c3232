"""Cassandra under the conformance suite: one node.

One node has no leader that could fail over, and Cassandra has no history and no watches.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

from coordination.backend import Auth
from coordination.connect import connect
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import SessionId
from tests.coordination.servers.cassandra import CassandraServer
from tests.coordination.servers.group_store import GroupStore, started, stepped_clock

_KEYSPACE = "suite"
_ONE_NODE = "the suite starts one node, and one node has no others"


class CassandraStore(GroupStore):
    """What a tester can do to Cassandra."""

    name = "cassandra"
    servers: CassandraServer
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.STEP_CLOCK,
            Ability.SKEW_REPLICAS,
            Ability.CREDENTIALS,
        }
    )
    lacks: Mapping[Ability, str] = {
        Ability.FAILOVER: "Cassandra has no leader",
        Ability.ISOLATE: _ONE_NODE,
        Ability.SEVERAL_ENDPOINTS: _ONE_NODE,
        Ability.COMPACT: "Cassandra keeps no history",
        Ability.COUNT_WATCHES: "Cassandra has no watches; clients poll",
    }
    # The driver may need a second and a half for a new connection, which a session should survive.
    ttl = 6.0
    # A kill loses what the commit log hasn't synced, as its default of 10 s allows.
    kill_keeps_data = False

    def url(self, addresses: Sequence[Address]) -> str:
        user = self.servers.user
        hosts = ",".join(map(str, addresses))
        return f"cassandra://{user.username}:{user.password}@{hosts}/{_KEYSPACE}"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth(self.servers.user.username, "guess")}

    async def prepare(self) -> None:
        # A node that has just started accepts connections long before it answers in time.
        async with connect(self.client_url(), ttl=self.ttl, request_timeout=60.0):
            pass

    async def restart(self) -> None:
        await super().restart()
        await self.prepare()

    async def expire(self, session: SessionId) -> None:
        """Remove a session's row, as the end of its time to live would."""
        await asyncio.to_thread(self._remove, session)

    def _remove(self, session: SessionId) -> None:
        user = self.servers.user
        cluster = Cluster(
            ["127.0.0.1"],
            port=self.servers.port,
            auth_provider=PlainTextAuthProvider(user.username, user.password),
        )
        try:
            cluster.connect(_KEYSPACE).execute(
                "DELETE FROM sessions WHERE session = %s IF EXISTS", (session,)
            )
        finally:
            cluster.shutdown()

    async def skew_replica(self, seconds: float) -> None:
        await self.step_clock(seconds)


def _configured(folder: Path) -> GroupStore:
    store = CassandraStore(CassandraServer(folder / "one"))
    stepped_clock(folder, store)
    return store


def open_store() -> AbstractAsyncContextManager[TcpStore]:
    """Start a node for the suite. Raises CannotStartError."""
    return started("cassandra", _configured)
