"""Three simulated controllers as a store under the conformance suite.

Rule: between the suite's client and the controllers' own request handlers there is only the
simulated network. The client is the product's: coordinator, session, quorum backend and its search
for the leader. It sends by the simulated network where it has an HTTP client otherwise.
"""

from collections.abc import Callable
from itertools import count

from coordination.backend import Backend, BackendSettings
from coordination.backends.quorum import OPTIONS
from coordination.backends.quorum.asking import ControllerRequests
from coordination.backends.quorum.connection import ROOT, QuorumBackend
from coordination.connect import connect
from coordination.scopes import sleep
from coordination.testing.store import Ability, ClientPlan, TcpStore, WiredClient
from coordination.types import Revision, SessionId
from metadata.messages.coordination import (
    CommitReply,
    CommitRequest,
    EndSessionReply,
    EndSessionRequest,
    GetKeyReply,
    KeyOperation,
)
from runtime.clock import Clock
from runtime.http.requests import Caller, Requester
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import SimulationFailedError
from tests.simulation.cases.case_sessions import CaseSessions
from tests.simulation.cases.guest_loop import GuestClock, GuestLoop, guest_loop
from tests.simulation.cases.simulated_link import SimulatedLink
from tests.simulation.cluster import Cluster, url_of

FIRST_HOST = 2_000
ADMIN = Caller("User:admin", "token", "10.0.0.9")
NOBODY = "http://nobody-listens"
FILL = b"f" * 4_000
FILLERS = 60
HISTORY_BYTES = FILLERS * len(FILL) // 2
"""So much of the log a controller reads for a watch, where a case wants history forgotten."""
_LOOK_AGAIN_S = 0.05
_LONGEST_S = 120.0
_LINKS: dict[str, tuple[list[str], Requester]] = {}


def make_simulated_backend(settings: BackendSettings) -> Backend:
    """Return a connection to the controllers over the link that the option `link` names."""
    settings.refuse_unknown_options("link", *OPTIONS)
    urls, requester = _LINKS[settings.options["link"]]
    requests = ControllerRequests(
        urls,
        requester,
        settings.clock,
        settings.dice,
        settings.request_timeout_s,
    )

    async def close() -> None:
        """The link belongs to the tester."""

    return QuorumBackend(requests, settings.options.get("client_name", ""), close)


class SimulatedStore(TcpStore):
    """What a tester can do to simulated controllers."""

    name = "simulated quorum"
    ttl = 4.0
    request_timeout = 4.0
    abilities = frozenset(
        {
            Ability.CUT,
            Ability.EXPIRE,
            Ability.RESTART,
            Ability.FAILOVER,
            Ability.ISOLATE,
            Ability.COMPACT,
            Ability.STEP_CLOCK,
            Ability.COUNT_WATCHES,
            Ability.SEVERAL_ENDPOINTS,
        }
    )

    def __init__(self, cluster: Cluster, loop: GuestLoop, on_request: Callable[[], None]) -> None:
        """`on_request` is called for each request of the case's clients."""
        super().__init__()
        self.run_id = str(cluster.seed)
        self.cluster = cluster
        self.loop = loop
        self.sessions = CaseSessions(cluster.world)
        self._on_request = on_request
        self._turns = count()
        self._isolated: int | None = None
        host = self._boot()
        self.clock: Clock = GuestClock(host.process, loop)
        self._tester = ControllerRequests(
            [url_of(n) for n in cluster.hosts],
            host.requests(ADMIN),
            self.clock,
            cluster.world.random("tester"),
            _LONGEST_S,
        )

    def _boot(self) -> SimulatedHost:
        """Return a new machine on which a process runs."""
        world, network = self.cluster.world, self.cluster.network
        host = SimulatedHost(world, network, FIRST_HOST + next(self._turns))
        host.boot()
        return host

    async def wire(self, plan: ClientPlan) -> WiredClient:
        return self.wire_on(self.loop, self._boot(), plan)

    def wire_alone(self, plan: ClientPlan) -> tuple[WiredClient, SimulatedHost, GuestLoop]:
        """Return a client with a loop of its own, which stands still while its host is paused."""
        host = self._boot()
        loop = guest_loop(self.cluster.world, host.process)
        return self.wire_on(loop, host, plan), host, loop

    def wire_on(self, loop: GuestLoop, host: SimulatedHost, plan: ClientPlan) -> WiredClient:
        """Return a client whose tasks run on `loop` and whose requests leave from `host`."""
        controllers = list(self.cluster.hosts)
        link = SimulatedLink(host, ADMIN, controllers, self.loop, self._on_request)
        chosen = controllers if plan.server is None else [controllers[plan.server]]
        urls = [url_of(n) for n in chosen]
        if plan.dead_endpoint_first:
            urls.insert(0, NOBODY)
        name = f"{self.run_id}-{host.node_id}"
        _LINKS[name] = urls, link
        opening = connect(
            f"class://{make_simulated_backend.__module__}.{make_simulated_backend.__name__}",
            ttl=plan.ttl,
            namespace=plan.namespace,
            request_timeout=plan.request_timeout,
            clock=GuestClock(host.process, loop),
            dice=self.cluster.world.random(f"client/{host.node_id}"),
            link=name,
            **plan.options,
        )
        return WiredClient(opening, link)

    # -- what a tester does --------------------------------------------------------------------

    async def now_revision(self) -> Revision:
        reply = await self._tester.ask("GET", f"{ROOT}/key", GetKeyReply, query={"key": "nothing"})
        return Revision(reply.revision)

    async def expire(self, session: SessionId) -> None:
        self.sessions.revoked.add(session)
        await self._tester.ask(
            "POST",
            f"{ROOT}/sessions/end",
            EndSessionReply,
            EndSessionRequest(session, revoke=True),
            request_id=self._tester.request_ids.of(None),
        )

    async def restart(self) -> None:
        for host in self.cluster.hosts.values():
            host.kill()
        await self.repair()

    async def failover(self) -> None:
        await self._until(lambda: self.cluster.leader() is not None, "somebody leads")
        leader = self.cluster.leader()
        assert leader is not None
        self.cluster.hosts[leader].kill()
        await self._until(lambda: self.cluster.leader() not in (None, leader), "another one leads")

    async def isolate(self) -> int:
        """Cut the leader off: whoever else is cut off has less to give away."""
        await self._until(lambda: self.cluster.leader() is not None, "somebody leads")
        leader = self._isolated = self.cluster.leader()
        assert leader is not None
        self.cluster.network.cut([leader], self._others(leader))
        return list(self.cluster.hosts).index(leader)

    async def repair(self) -> None:
        if self._isolated is not None:
            self.cluster.network.mend([self._isolated], self._others(self._isolated))
            self._isolated = None
        for node_id, host in self.cluster.hosts.items():
            if not host.running:
                self.cluster.start(node_id)
        await self._until(lambda: self.cluster.leader() is not None, "somebody leads again")

    async def step_clock(self, seconds: float) -> None:
        for host in self.cluster.hosts.values():
            host.machine.jump_wall(seconds)

    async def compact(self, revision: Revision) -> None:
        """Write so much that the controllers read no log from before `revision` for a watch."""
        for number in range(FILLERS):
            operation = KeyOperation("upsert", f"filler/{number}", FILL)
            await self._tester.ask(
                "POST",
                f"{ROOT}/commit",
                CommitReply,
                CommitRequest(operations=(operation,)),
                request_id=self._tester.request_ids.of(None),
            )

    async def watches(self) -> int:
        return sum(len(each._http.coordination) for each in self.cluster.running().values())

    def _others(self, node_id: int) -> list[int]:
        return [n for n in self.cluster.hosts if n != node_id]

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        end = self.clock.monotonic() + _LONGEST_S
        while not condition():
            if self.clock.monotonic() > end:
                raise SimulationFailedError(f"not in time: {what}", self.cluster.seed, None)
            await sleep(self.clock, _LOOK_AGAIN_S)
