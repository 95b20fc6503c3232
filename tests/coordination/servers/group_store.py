"""What all stores share whose servers are child processes of the conformance suite.

Rule: the servers are started on the event loop's own thread, since the kernel ends them with the
thread that started them, and a pool's threads come and go. Only waiting is done in the pool.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.peers.tools import NoToolError
from coordination.testing.proxy import Address
from coordination.testing.store import Ability, CannotStartError, TcpStore
from tests.coordination.servers.peer_gate import PeerGate
from tests.coordination.servers.server_group import ServerGroup
from tests.coordination.servers.tier import not_run_reason
from tests.coordination.servers.wall_clock import WallClock


class GroupStore(TcpStore):
    """What a tester can do to any group of servers.

    A store with `Ability.ISOLATE` has a gate, and one with `Ability.STEP_CLOCK` has a clock.
    """

    gate: PeerGate | None = None
    clock: WallClock | None = None
    kill_keeps_data = True
    """A killed server has all it acknowledged when it is back."""

    def __init__(self, servers: ServerGroup) -> None:
        super().__init__()
        self.servers = servers
        self.addresses: Sequence[Address] = [Address("127.0.0.1", port) for port in servers.ports]

    async def prepare(self) -> None:
        """Do what the suite needs once on fresh servers that serve."""

    async def restart(self) -> None:
        await asyncio.to_thread(self.servers.kill if self.kill_keeps_data else self.servers.stop)
        await self._start()

    async def failover(self) -> None:
        leader = await asyncio.to_thread(self.servers.leader)
        self.servers.kill(leader)
        await asyncio.to_thread(self.servers.leader, but=leader)

    async def isolate(self) -> int:
        assert self.gate is not None
        lonely = self.lonely(await asyncio.to_thread(self.servers.leader))
        self.gate.cut(lonely, self.servers.children[lonely].pid)
        await asyncio.to_thread(self.servers.leader, but=lonely)
        return lonely

    def lonely(self, leader: int) -> int:
        """Return whom to cut off: the leader, who alone could believe that it may still answer."""
        return leader

    async def repair(self) -> None:
        if self.gate is not None:
            self.gate.mend()
        if self.clock is not None:
            self.clock.step(0.0)
        await self._start()

    async def step_clock(self, seconds: float) -> None:
        assert self.clock is not None
        self.clock.step(seconds)

    async def _start(self) -> None:
        self.servers.start_children()
        await asyncio.to_thread(self.servers.wait)


def stepped_clock(folder: Path, store: GroupStore) -> None:
    """Put all servers of a store under a wall clock that a tester steps, if one can be made."""
    try:
        store.clock = WallClock(folder)
    except NoToolError as error:
        store.lacks = {**store.lacks, Ability.STEP_CLOCK: str(error)}
        store.abilities -= {Ability.STEP_CLOCK}
        return
    for child in store.servers.children:
        store.clock.govern(child)


@asynccontextmanager
async def started(name: str, make: Callable[[Path], GroupStore]) -> AsyncIterator[TcpStore]:
    """Start a store's servers for the suite. Raises CannotStartError.

    `make` gets an empty folder and configures the servers. It may raise NoToolError.
    """
    if (reason := not_run_reason()) is not None:
        raise CannotStartError(reason)
    with tempfile.TemporaryDirectory(prefix=f"logberg-{name}-") as folder, ExitStack() as stack:
        try:
            store = make(Path(folder))
        except NoToolError as error:
            raise CannotStartError(str(error)) from None
        if store.gate is not None:
            stack.enter_context(store.gate)
        try:
            await store._start()
            await store.prepare()
            yield store
        finally:
            await asyncio.to_thread(store.servers.stop)
