"""What a case does to clients and to the store: `Harness`, one for each run of a case.

Rule: the harness has no fault that a case didn't ask for, and undoes each one when the case ends.
All clients of one case share a namespace of their own, so cases don't meet in a store that serves
several of them.

Times come from the store: `ttl` is the cases' T, and `patience` is how long "eventually" waits: 2T
+ 2 s, and what the backend declares beyond that (`expiry_slack_s`, `poll_interval_s`,
`lock_delay_s`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

from coordination.coordinator import Coordinator
from coordination.testing.proxy import Link, LinkState
from coordination.testing.remote import RemoteClient
from coordination.testing.store import ClientPlan, Store
from coordination.types import Capabilities, Revision
from runtime.asyncio_clock import of_running_loop

T = TypeVar("T")
_LOOK_AGAIN_S = 0.01


class Harness:
    """The tester's hands, as the cases see them."""

    def __init__(self, store: Store, namespace: str) -> None:
        """`namespace`: of this run alone."""
        self.store = store
        self.namespace = namespace
        self.ttl = store.ttl
        """T, in seconds."""
        self.client_ttl = store.ttl
        """What `make_client` asks for unless it is told otherwise: T, or longer in busy cases."""
        self.request_timeout = store.request_timeout
        """As `client_ttl`."""
        self._links: dict[int, Link] = {}
        self._entered: dict[int, AsyncExitStack] = {}
        self._remotes: list[RemoteClient] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closings: list[asyncio.Task[None]] = []
        self._capabilities: Capabilities | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the backend declares. Known from the first client on."""
        assert self._capabilities is not None, "make a client first"
        return self._capabilities

    @property
    def patience(self) -> float:
        """Seconds within which what happens "eventually" has happened."""
        late = 0.0
        if self._capabilities is not None:
            told = self._capabilities
            late = told.expiry_slack_s + 2 * told.poll_interval_s + told.lock_delay_s
        return 2 * self.ttl + 2.0 + late

    @property
    def crowd_patience(self) -> float:
        """Seconds for work of many steps, which a slow store takes one after the other."""
        return 200.0

    def volume(self, count: int) -> int:
        """Return how many steps a case of many steps takes here.

        A store that polls takes a tenth: each hand-over waits for a poll.
        """
        return count if self.capabilities.push_watch else count // 10

    def now(self) -> float:
        """Return the time on the clock by which clients count deadlines, in seconds."""
        return of_running_loop().monotonic()

    # Clients

    def plan(self, **changes: Any) -> ClientPlan:
        """Return the plan of an ordinary client with these changes."""
        fields: dict[str, Any] = {
            "namespace": self.namespace,
            "ttl": self.client_ttl,
            "request_timeout": self.request_timeout,
            **changes,
        }
        return ClientPlan(**fields)

    async def make_client(self, **changes: Any) -> Coordinator:
        """Open a client with a session of its own. `changes` are fields of `ClientPlan`."""
        wired = await self.store.wire(self.plan(**changes))
        stack = AsyncExitStack()
        stack.push_async_callback(wired.link.aclose)
        try:
            client = await stack.enter_async_context(wired.opening)
        except BaseException:
            await stack.aclose()
            raise
        self._links[id(client)] = wired.link
        self._entered[id(client)] = stack
        self._capabilities = client.capabilities
        return client

    async def make_clients(self, count: int) -> list[Coordinator]:
        """Open several clients."""
        return [await self.make_client() for _ in range(count)]

    async def make_remote_client(self, **changes: Any) -> RemoteClient:
        """Open a client on an event loop of its own, which `freeze_client` can stop."""
        wired = await self.store.wire(self.plan(**changes))
        remote = RemoteClient(wired.opening)
        self._remotes.append(remote)
        try:
            await remote.open()
        except BaseException:
            await wired.link.aclose()
            raise
        self._links[id(remote)] = wired.link
        self._capabilities = await remote.call(_capabilities_of)
        return remote

    async def close_client(self, client: Coordinator) -> None:
        """Close a client in good order."""
        await self._entered.pop(id(client)).aclose()

    async def kill_client(self, client: Coordinator) -> None:
        """End a client without a goodbye: its links are reset before it can say anything.

        It closes beside the case, since it may try to reach its servers for a while.
        """
        self._links[id(client)].put(LinkState.REFUSED)
        self._closings.append(asyncio.ensure_future(self.close_client(client)))
        await asyncio.sleep(0)

    async def freeze_client(self, remote: RemoteClient) -> None:
        """Stop a client's event loop: no heartbeat, no timer. `thaw_client` ends it.

        Its link is cut too: a driver may have a thread of its own, and a frozen process has none.
        """
        self.cut(remote)
        await remote.freeze()

    def thaw_client(self, remote: RemoteClient) -> None:
        """Let a frozen client go on."""
        self.heal(remote)
        remote.thaw()

    # Links

    def cut(self, client: Coordinator | RemoteClient, *, refuse: bool = False) -> None:
        """Cut a client off from all servers; `refuse` resets its connections as well.

        Without `refuse` nothing is carried and nothing says so, as when a cable is pulled.
        """
        self._links[id(client)].put(LinkState.REFUSED if refuse else LinkState.CUT)

    def heal(self, client: Coordinator | RemoteClient) -> None:
        """Undo `cut`. What was held back is carried now."""
        self._links[id(client)].put(LinkState.OPEN)

    @asynccontextmanager
    async def losing_replies(self, client: Coordinator) -> AsyncIterator[None]:
        """Requests arrive inside this block and no reply does; its end resets the connections."""
        link = self._links[id(client)]
        link.put(LinkState.LOSING_REPLIES)
        try:
            yield
        finally:
            link.put(LinkState.OPEN)

    async def drop_next_reply(
        self,
        client: Coordinator,
        request: Coroutine[Any, Any, T],
        applied: Callable[[], Awaitable[object]],
    ) -> asyncio.Task[T]:
        """Start a request, lose its reply, and return its task once the connection is back.

        `applied` says, through another client, that the store has made the change. Replies before
        that are carried: some backends need several requests for one change.
        """
        link = self._links[id(client)]
        link.lose_replies_once(applied)
        task = self.start(request)
        await self.until(
            lambda: link.state is LinkState.LOSING_REPLIES or task.done(),
            "the reply of the change is lost",
        )
        assert link.state is LinkState.LOSING_REPLIES, f"the reply was carried: {task!r}"
        link.put(LinkState.OPEN)
        return task

    def connections(self, client: Coordinator) -> int:
        """Return how many connections a client has open."""
        return self._links[id(client)].connections()

    # The store

    async def expire(self, client: Coordinator) -> None:
        """End a client's session on the server."""
        await self.store.expire(client.session.id)

    async def restart_server(self) -> None:
        """Stop all servers and start them again on their data."""
        await self.store.restart()

    async def failover_leader(self) -> None:
        """Kill the leading server; another one serves when this returns."""
        await self.store.failover()

    async def isolate_server(self) -> int:
        """Cut one server off from the others and return its number."""
        return await self.store.isolate()

    async def compact(self, revision: Revision) -> None:
        """Let the store forget its history before a revision."""
        await self.store.compact(revision)

    async def step_clock(self, seconds: float) -> None:
        """Step the wall clock of all servers."""
        await self.store.step_clock(seconds)

    async def now_revision(self) -> Revision:
        """Return the store's present revision."""
        return await self.store.now_revision()

    async def watches(self) -> int:
        """Return how many watches the servers hold."""
        return await self.store.watches()

    # Waiting

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` beside the case; what is left of it when the case ends is cancelled."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        return task

    async def eventually(
        self,
        condition: Callable[[], Awaitable[object]],
        what: str,
        *,
        within: float | None = None,
    ) -> None:
        """Return when `condition` holds. Raises AssertionError, with `what`, after `within` s."""
        wait = self.patience if within is None else within
        end = self.now() + wait
        while not await condition():
            assert self.now() < end, f"not within {wait:.1f} s: {what}"
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def until(
        self, condition: Callable[[], object], what: str, *, within: float | None = None
    ) -> None:
        """As `eventually`, for a condition that asks no store."""

        async def holds() -> object:
            return condition()

        await self.eventually(holds, what, within=within)

    async def in_time(
        self, work: Awaitable[T], what: str = "the call returns", *, within: float | None = None
    ) -> T:
        """Return what `work` returns. Raises AssertionError if it takes longer than `within` s."""
        wait = self.patience if within is None else within
        try:
            async with asyncio.timeout(wait) as limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise AssertionError(f"not within {wait:.1f} s: {what}") from None

    async def aclose(self) -> None:
        """Undo every fault, close every client, cancel what still runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._closings, return_exceptions=True)
        for link in self._links.values():
            link.put(LinkState.OPEN)
        for remote in self._remotes:
            await remote.aclose()
            if id(remote) in self._links:
                await self._links[id(remote)].aclose()
        for stack in self._entered.values():
            with suppress(Exception):
                await stack.aclose()
        await self.store.repair()


async def _capabilities_of(client: Coordinator) -> Capabilities:
    return client.capabilities
