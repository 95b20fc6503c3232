"""Cassandra under the conformance suite: one node.

One node has no leader that could fail over, and Cassandra has no history and no watches. A session
ends by its rows' time to live, and nobody can end it sooner from outside.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.peers.tools import NoToolError
from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, CannotStartError, TcpStore
from tests.coordination.servers.cassandra import CassandraServer
from tests.coordination.servers.tier import not_run_reason


class CassandraStore(TcpStore):
    """What a tester can do to Cassandra."""

    name = "cassandra"
    abilities = frozenset(
        {Ability.CUT, Ability.OTHER_PROCESS, Ability.RESTART, Ability.CREDENTIALS}
    )
    ttl = 4.0

    def __init__(self, server: CassandraServer) -> None:
        super().__init__()
        self._server = server
        self.addresses = [Address("127.0.0.1", server.port)]

    def url(self, addresses: Sequence[Address]) -> str:
        return f"cassandra://cassandra:cassandra@{','.join(map(str, addresses))}/suite"

    def wrong_credentials(self) -> Mapping[str, object]:
        return {"auth": Auth("cassandra", "guess")}

    async def restart(self) -> None:
        # A kill loses what the commit log hasn't synced, as its default of 10 s allows.
        await asyncio.to_thread(self._server.stop)
        await asyncio.to_thread(self._server.start)


@asynccontextmanager
async def open_store() -> AsyncIterator[TcpStore]:
    """Start a node for the suite. Raises CannotStartError."""
    if (reason := not_run_reason()) is not None:
        raise CannotStartError(reason)
    with tempfile.TemporaryDirectory(prefix="logberg-cassandra-") as folder:
        try:
            server = CassandraServer(Path(folder) / "one")
        except NoToolError as error:
            raise CannotStartError(str(error)) from None
        try:
            await asyncio.to_thread(server.start)
            yield CassandraStore(server)
        finally:
            await asyncio.to_thread(server.stop)
