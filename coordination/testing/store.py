"""What the suite needs of a store under test: how to reach it, and what a tester can do to it.

Rule: a store says in `abilities` what a tester can do to it. A case that needs another ability is
skipped, and the matrix names the ability. A store never says that it can do something and then
refuses.

`TcpStore` serves every store that listens on TCP ports: it puts a proxy before each port, for each
client its own. So a tester can cut one client off and leave the others alone.
"""

import enum
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.testing.proxy import Address, Link, ProxiedLink
from coordination.types import Revision, SessionId
from runtime.randomness import from_system


class Ability(enum.Enum):
    """What a tester can do to a store, beside what every store allows."""

    CUT = "cut one client off"
    EXPIRE = "end a session on the server"
    RESTART = "restart the servers and keep their data"
    FAILOVER = "kill the leading server of several"
    ISOLATE = "cut one server off from the others"
    COMPACT = "forget history up to a revision"
    STEP_CLOCK = "step the servers' wall clock"
    COUNT_WATCHES = "count the watches that the servers hold"
    SEVERAL_ENDPOINTS = "reach the store by several addresses"
    OTHER_PROCESS = "reach the store from another process"
    CREDENTIALS = "refuse wrong credentials"
    TRANSPLANT = "import the store into a quorum"
    SKEW_REPLICAS = "step the clock of one replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    """How the harness asks for one client."""

    namespace: str
    ttl: float
    """Seconds."""
    request_timeout: float
    """Seconds."""
    dead_endpoint_first: bool = False
    """The first address of the URL has no listener. Needs `Ability.SEVERAL_ENDPOINTS`."""
    server: int | None = None
    """Reach only the server of this number, counted from 0."""
    without: int | None = None
    """Reach all servers but the one of this number."""
    wrong_credentials: bool = False
    """Needs `Ability.CREDENTIALS`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `connect`."""


class WiredClient(NamedTuple):
    """A client that isn't open yet, and the link by which it will reach the store."""

    opening: AbstractAsyncContextManager[Coordinator]
    """Enter it on the event loop that shall run the client."""
    link: Link


class Store(Protocol):
    """One store under test. It serves many cases in turn, each in a namespace of its own."""

    name: str
    """As the matrix shows it."""
    abilities: frozenset[Ability]
    lacks: Mapping[Ability, str]
    """Why an ability is missing, where its name alone doesn't say it; the matrix shows it."""
    ttl: float
    """Seconds: the ttl that the cases use. Not below the backend's declared smallest ttl."""
    request_timeout: float
    """Seconds: the request timeout of the cases' clients."""
    run_id: str
    """Of this run alone: the cases' namespaces end with it."""

    async def wire(self, plan: ClientPlan) -> WiredClient:
        """Return a client as `plan` asks for it. The client isn't open yet."""

    async def now_revision(self) -> Revision:
        """Return the store's present revision."""

    async def expire(self, session: SessionId) -> None:
        """End a session as if its ttl had passed. Needs `Ability.EXPIRE`."""

    async def restart(self) -> None:
        """Stop all servers, start them again on their data, wait until they serve. `RESTART`."""

    async def failover(self) -> None:
        """Kill the leading server and wait until another one serves. `FAILOVER`."""

    async def repair(self) -> None:
        """Start the servers that `failover` killed, join those that `isolate` cut off."""

    async def isolate(self) -> int:
        """Cut one server off from the others and return its number. `ISOLATE`."""

    async def compact(self, revision: Revision) -> None:
        """Forget the history before `revision`. `COMPACT`."""

    async def step_clock(self, seconds: float) -> None:
        """Step the wall clock of all servers by so much against the true time. `STEP_CLOCK`."""

    async def skew_replica(self, seconds: float) -> None:
        """Step the wall clock of one server. 0 mends it. `SKEW_REPLICAS`."""

    async def watches(self) -> int:
        """Return how many watches the servers hold. `COUNT_WATCHES`."""

    async def transplant(self) -> "Store":
        """Import all that the store holds into a new quorum and return that. `TRANSPLANT`."""

    def client_url(self) -> str:
        """Return a URL for `connect`, without proxies. `OTHER_PROCESS`."""


class TcpStore:
    """A store that listens on TCP ports. Subclass it, and add what your servers can do.

    A subclass sets `name`, `abilities`, `ttl` and `addresses`, and overrides `url` and
    the methods of its abilities. The other methods raise NotImplementedError: no case calls them.
    """

    name: str
    abilities: frozenset[Ability] = frozenset({Ability.CUT, Ability.OTHER_PROCESS})
    lacks: Mapping[Ability, str] = MappingProxyType({})
    ttl: float = 2.0
    request_timeout: float = 3.0
    addresses: Sequence[Address]
    """Where the servers' client ports are, without proxies."""

    def __init__(self) -> None:
        self.run_id = f"{from_system().getrandbits(32):08x}"

    def url(self, addresses: Sequence[Address]) -> str:
        """Return the URL by which `connect` reaches the store over these addresses."""
        raise NotImplementedError

    def wrong_credentials(self) -> Mapping[str, Any]:
        """Return options of `connect` with credentials that the store refuses. `CREDENTIALS`."""
        raise NotImplementedError

    async def wire(self, plan: ClientPlan) -> WiredClient:
        link = await ProxiedLink.open(self._chosen(plan))
        reached = list(link.addresses)
        if plan.dead_endpoint_first:
            reached.insert(0, await link.dead_address())
        options = dict(plan.options)
        if plan.wrong_credentials:
            options.update(self.wrong_credentials())
        opening = connect(
            self.url(reached),
            ttl=plan.ttl,
            namespace=plan.namespace,
            request_timeout=plan.request_timeout,
            **options,
        )
        return WiredClient(opening, link)

    def _chosen(self, plan: ClientPlan) -> list[Address]:
        if plan.server is not None:
            return [self.addresses[plan.server]]
        return [each for n, each in enumerate(self.addresses) if n != plan.without]

    def client_url(self) -> str:
        return self.url(self.addresses)

    async def now_revision(self) -> Revision:
        raise NotImplementedError

    async def expire(self, session: SessionId) -> None:
        raise NotImplementedError

    async def restart(self) -> None:
        raise NotImplementedError

    async def failover(self) -> None:
        raise NotImplementedError

    async def repair(self) -> None:
        """Nothing was broken: a store without `FAILOVER` and `ISOLATE` needs no repair."""

    async def isolate(self) -> int:
        raise NotImplementedError

    async def compact(self, revision: Revision) -> None:
        raise NotImplementedError

    async def step_clock(self, seconds: float) -> None:
        raise NotImplementedError

    async def skew_replica(self, seconds: float) -> None:
        raise NotImplementedError

    async def watches(self) -> int:
        raise NotImplementedError

    async def transplant(self) -> Store:
        raise NotImplementedError


class CannotStartError(Exception):
    """The servers of a store can't be started here; the message says why. The matrix: not run."""
