"""Our own quorum under the conformance suite: three real controllers, with TLS and tokens.

The proxies stand before the controllers' ports, so clients ask only the URLs that they were given:
an answer that names the leader would lead them past the proxy.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from logberg.local.local_cluster import ADMIN
from tests.process.running_cluster import RunningCluster, running


class QuorumStore(TcpStore):
    """What a tester can do to three controllers."""

    name = "quorum"
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

    def __init__(self, cluster: RunningCluster) -> None:
        super().__init__()
        self._cluster = cluster
        ports = [urlsplit(cluster.url(n)).port or 0 for n in cluster.local.controllers]
        self.addresses = [Address("127.0.0.1", port) for port in ports]

    def url(self, addresses: Sequence[Address]) -> str:
        token = self._cluster.local.token_file(ADMIN)
        files = f"ca={self._cluster.local.file.ca}&token_file={token}"
        return f"quorum+https://{','.join(map(str, addresses))}?{files}&only_named=true"

    def wrong_credentials(self) -> Mapping[str, Any]:
        return {"auth": Auth(token="nobody-has-this-token")}

    async def now_revision(self) -> Revision:
        reply = await self._ask("GET", "/v1/coordination/key?key=nothing", None)
        return Revision(reply["revision"])

    async def expire(self, session: SessionId) -> None:
        request = {"sessionId": session, "revoke": True}
        await self._ask("POST", "/v1/coordination/sessions/end", request)

    async def restart(self) -> None:
        await asyncio.to_thread(self._cluster.stop)
        await self.repair()

    async def failover(self) -> None:
        leader = await asyncio.to_thread(self._cluster.leader)
        self._cluster.controller(leader).kill()
        await asyncio.to_thread(self._cluster.leader, but=leader)

    async def repair(self) -> None:
        # The kernel ends a child with the thread that started it, so that isn't a worker thread.
        for n in self._cluster.local.controllers:
            if not self._cluster.controller(n).running:
                self._cluster.controller(n).start()
        await asyncio.to_thread(self._cluster.until, self._cluster.settled, "all controllers serve")

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        leader = await asyncio.to_thread(self._cluster.leader)
        url = self._cluster.url(leader)
        answer = await asyncio.to_thread(self._cluster.ask, url, method, path, body)
        assert answer.status == 200, answer.body
        return answer.body


@asynccontextmanager
async def open_store() -> AsyncIterator[TcpStore]:
    """Start three controllers for the suite."""
    with tempfile.TemporaryDirectory(prefix="logberg-quorum-") as folder:
        started = running(Path(folder) / "three")
        cluster = await asyncio.to_thread(started.__enter__)
        try:
            yield QuorumStore(cluster)
        finally:
            await asyncio.to_thread(started.__exit__, None, None, None)
