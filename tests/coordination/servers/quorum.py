"""Our own quorum under the conformance suite: three real controllers, with TLS and tokens.

The proxies stand before the controllers' ports, so clients ask only the URLs that they were given:
an answer that names the leader would lead them past the proxy.
"""

import asyncio
import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controller.http.coordination.feed import BYTES_KEPT
from coordination.backend import Auth
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, TcpStore
from coordination.types import Revision, SessionId
from logberg.local.issued_tokens import ADMIN
from tests.coordination.servers.group_store import GroupStore, started, stepped_clock
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.server_group import ServerGroup
from tests.process.running_cluster import RunningCluster

_PIECE_BYTES = 1_000_000
_WATCHES = re.compile(r"^logberg_coordination_watches (\d+)", re.MULTILINE)


class Controllers(ServerGroup):
    """The controllers of one cluster."""

    name = "quorum"

    def __init__(self, cluster: RunningCluster, gate: PeerGate) -> None:
        """Configure the controllers of a cluster to reach each other through a gate."""
        self.cluster = cluster
        self.children = list(cluster.local.controllers.values())
        self.ports = [urlsplit(cluster.url(n)).port or 0 for n in cluster.local.controllers]
        for server, n in enumerate(cluster.local.controllers):
            own = cluster.local.quorum_address(n)
            told = f"127.0.0.1:{gate.before(int(own.rpartition(':')[2]), server)}"
            for other in cluster.local.controllers:
                if other != n:
                    file = cluster.folder / "config" / f"controller-{other}.toml"
                    file.write_text(file.read_text().replace(own, told))

    def serves(self, n: int) -> bool:
        return self.cluster.settled()

    def leads(self, n: int) -> bool:
        status = self.cluster.status(n + 1)
        return status is not None and bool(status["active"])


class QuorumStore(GroupStore):
    """What a tester can do to three controllers."""

    name = "quorum"
    servers: Controllers
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.OTHER_PROCESS,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.ISOLATE,
            Ability.STEP_CLOCK,
            Ability.COMPACT,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
            Ability.CREDENTIALS,
        }
    )
    lacks: Mapping[Ability, str] = {
        Ability.TRANSPLANT: "it is itself what the other stores are imported into"
    }

    def url(self, addresses: Sequence[Address]) -> str:
        local = self.servers.cluster.local
        files = f"ca={local.file.ca}&token_file={local.token_file(ADMIN)}"
        return f"quorum+https://{','.join(map(str, addresses))}?{files}&only_named=true"

    def wrong_credentials(self) -> Mapping[str, Any]:
        return {"auth": Auth(token="nobody-has-this-token")}

    async def now_revision(self) -> Revision:
        reply = await self._ask("GET", "/v1/coordination/key?key=nothing")
        return Revision(reply["revision"])

    async def expire(self, session: SessionId) -> None:
        request = {"sessionId": session, "revoke": True}
        await self._ask("POST", "/v1/coordination/sessions/end", request)

    async def compact(self, revision: Revision) -> None:
        """Write so much that no controller answers a watch from before it with history.

        A controller forgets no log. But it keeps only the newest changes at hand, and reads only a
        part of the log for a watch; whoever asks for more gets the present state.
        """
        value = base64.b64encode(bytes(_PIECE_BYTES)).decode()
        put = {"op": "upsert", "key": "filler", "data": value}
        for _ in range(BYTES_KEPT // _PIECE_BYTES + 2):
            await self._ask("POST", "/v1/coordination/commit", {"operations": [put]})

    async def watches(self) -> int:
        return sum([await asyncio.to_thread(self._watches, n) for n in range(len(self.addresses))])

    def _watches(self, n: int) -> int:
        cluster = self.servers.cluster
        page = cluster.ask(cluster.url(n + 1), "GET", "/metrics").body.decode()
        found = _WATCHES.search(page)
        assert found is not None, "the controller doesn't count its watches"
        return int(found[1])

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        cluster = self.servers.cluster
        leader = await asyncio.to_thread(cluster.leader)
        answer = await asyncio.to_thread(cluster.ask, cluster.url(leader), method, path, body)
        assert answer.status == 200, answer.body
        return answer.body


def _configured(folder: Path) -> GroupStore:
    gate = PeerGate()
    store = QuorumStore(Controllers(RunningCluster(folder / "three"), gate))
    store.gate = gate
    stepped_clock(folder, store)
    return store


def open_store() -> AbstractAsyncContextManager[TcpStore]:
    """Start three controllers for the suite."""
    return started("quorum", _configured)


@contextmanager
def running_store(folder: Path) -> Iterator[QuorumStore]:
    """Three controllers for tests that share them."""
    folder.mkdir(exist_ok=True)
    store = _configured(folder)
    assert isinstance(store, QuorumStore)
    assert store.gate is not None
    with ExitStack() as stack:
        stack.enter_context(store.gate)
        stack.callback(store.servers.kill)
        store.servers.start()
        yield store
