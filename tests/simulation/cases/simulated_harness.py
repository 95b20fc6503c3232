"""The tester's hands in the simulated world, and a client that can be frozen there.

Rule: to freeze a client is to pause its process: no callback, no timer, no reply reaches it. So no
thread is needed, and a seed repeats it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from coordination.coordinator import Coordinator
from coordination.testing.harness import Harness
from coordination.testing.remote import RemoteClient
from coordination.testing.store import WiredClient
from coordination.types import Capabilities
from runtime.simulated.host import SimulatedHost
from tests.simulation.cases.guest_loop import GuestLoop
from tests.simulation.cases.simulated_store import SimulatedStore

R = TypeVar("R")


class PausableClient:
    """`coordination.testing.remote.RemoteClient` on a simulated machine of its own."""

    def __init__(
        self, wired: WiredClient, host: SimulatedHost, loop: GuestLoop, tester: GuestLoop
    ) -> None:
        self._opening = wired.opening
        self._host = host
        self._loop = loop
        self._tester = tester
        self._coordinator: Coordinator | None = None

    async def open(self) -> None:
        """Open the client on its loop."""
        self._coordinator = await self._on_loop(self._opening.__aenter__)

    async def call(self, function: Callable[[Coordinator], Awaitable[R]]) -> R:
        """Run `function` with the coordinator on the client's loop and return its result."""
        coordinator = self._coordinator
        assert coordinator is not None, "open the client first"
        return await self._on_loop(lambda: function(coordinator))

    async def freeze(self) -> None:
        """Let the client stand still."""
        self._host.pause()

    def thaw(self) -> None:
        """Let it go on."""
        self._host.resume()

    async def aclose(self) -> None:
        """Close the client, also a frozen one."""
        self.thaw()
        if self._coordinator is not None:
            with suppress(Exception):
                await self._on_loop(lambda: self._opening.__aexit__(None, None, None))

    async def _on_loop(self, function: Callable[[], Awaitable[R]]) -> R:
        """Run `function` over there; its outcome comes back as a callback of the tester's loop."""
        outcome = self._tester.create_future()

        async def run() -> None:
            try:
                result = await function()
            except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
                settle, what = outcome.set_exception, cast("Any", error)
            else:
                settle, what = outcome.set_result, result
            if not outcome.done():
                settle(what)

        task = self._loop.create_task(run())
        outcome.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
        return cast("R", await outcome)


class SimulatedHarness(Harness):
    """`Harness` on the world's clock."""

    store: SimulatedStore

    def __init__(
        self, store: SimulatedStore, namespace: str, late_s: float, *, whole: bool
    ) -> None:
        """`late_s`: how much longer faults may delay what happens "eventually".

        `whole`: the case makes all the steps that it makes on a real store.
        """
        super().__init__(store, namespace)
        self._late_s = late_s
        self.whole = whole

    @property
    def patience(self) -> float:
        # A lost request costs a try: here nothing is sent again below the client, as TCP does.
        return super().patience + self._late_s + self.request_timeout / 2

    def volume(self, count: int) -> int:
        """A tenth, where that is enough: many seeds show more than one long run."""
        return count if self.whole else count // 10

    def now(self) -> float:
        return self.store.clock.monotonic()

    async def make_client(self, **changes: Any) -> Coordinator:
        client = await super().make_client(**changes)
        self.store.sessions.add(client)
        return client

    async def make_remote_client(self, **changes: Any) -> RemoteClient:
        wired, host, loop = self.store.wire_alone(self.plan(**changes))
        remote = cast("RemoteClient", PausableClient(wired, host, loop, self.store.loop))
        self._remotes.append(remote)
        try:
            await remote.open()
        except BaseException:
            await wired.link.aclose()
            raise
        self._links[id(remote)] = wired.link
        self._capabilities = await remote.call(_capabilities_of)
        self.store.sessions.add(await remote.call(_itself))
        return remote


async def _capabilities_of(client: Coordinator) -> Capabilities:
    return client.capabilities


async def _itself(client: Coordinator) -> Coordinator:
    return client
