"""The link between a client and the store, which a tester can cut, and a TCP proxy that is one.

Rule: a link changes nothing of what it carries. It carries bytes, holds them back, loses them, or
closes the connections. It knows no protocol. So the same proxy serves every store.

| state | bytes to the server | bytes to the client | new connections |
|---|---|---|---|
| open | carried | carried | carried |
| cut | held until healed | held until healed | accepted, and held |
| refused | connections are reset | connections are reset | reset at once |
| losing replies | carried | lost | accepted, replies lost |

`heal` after "losing replies" resets the connections: what was lost on them can't come any more.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, Self

_CHUNK = 64 * 1024


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Applied = Callable[[], Awaitable[object]]
"""Asks the store, over another link, whether a change is made."""


class LinkState(enum.Enum):
    """What a link does with what it should carry."""

    OPEN = enum.auto()
    CUT = enum.auto()
    REFUSED = enum.auto()
    LOSING_REPLIES = enum.auto()


class Link(Protocol):
    """The link between a client and the store. Call its methods on the harness' event loop."""

    def put(self, state: LinkState) -> None:
        """Change what the link does, from now on."""

    def lose_replies_once(self, applied: Applied) -> None:
        """Carry replies until `applied` says that a change is made; lose them from then on."""

    @property
    def state(self) -> LinkState:
        """What the link does now."""

    def connections(self) -> int:
        """Return how many connections are open. A link without connections says 0."""

    async def aclose(self) -> None:
        """Close all connections."""


class ProxiedLink:
    """One proxy for each address of the store, all in the same state."""

    def __init__(self) -> None:
        self._state = LinkState.OPEN
        self._applied: Applied | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._servers: list[asyncio.Server] = []
        self._pairs: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.addresses: list[Address] = []

    @classmethod
    async def open(cls, targets: Sequence[Address]) -> Self:
        """Listen on a free port of 127.0.0.1 for each target."""
        link = cls()
        for target in targets:
            link.addresses.append(await link._listen(target))
        return link

    async def dead_address(self) -> Address:
        """Return an address where nobody listens."""
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        address = Address(*server.sockets[0].getsockname()[:2])
        server.close()
        return address

    async def _listen(self, target: Address) -> Address:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carry(target, reader, writer)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return Address(*server.sockets[0].getsockname()[:2])

    def put(self, state: LinkState) -> None:
        was, self._state = self._state, state
        self._applied = None
        if state is LinkState.CUT:
            self._open.clear()
        else:
            self._open.set()
        if state is LinkState.REFUSED or was is LinkState.LOSING_REPLIES:
            for pair in list(self._pairs):
                pair.reset()

    @property
    def state(self) -> LinkState:
        return self._state

    def lose_replies_once(self, applied: Applied) -> None:
        self._applied = applied

    def connections(self) -> int:
        return len(self._pairs)

    async def aclose(self) -> None:
        for server in self._servers:
            server.close()
        self.put(LinkState.REFUSED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(
        self, target: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._open.wait()
            if self._state is LinkState.REFUSED:
                return
            try:
                out = await asyncio.open_connection(*target)
            except OSError:
                return
            await self._pump_both(_Pair(reader, writer, *out))
        except asyncio.CancelledError:
            # The link closes. asyncio.start_server would log the cancelled task as an error.
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _pump_both(self, pair: "_Pair") -> None:
        self._pairs.add(pair)
        pumps = [
            asyncio.ensure_future(
                self._pump(pair.client_reader, pair.server_writer, to_client=False)
            ),
            asyncio.ensure_future(
                self._pump(pair.server_reader, pair.client_writer, to_client=True)
            ),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._pairs.discard(pair)
            pair.reset()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_client: bool
    ) -> None:
        """Carry bytes in one direction until either side closes."""
        try:
            while data := await reader.read(_CHUNK):
                await self._open.wait()
                if to_client and await self._loses():
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    async def _loses(self) -> bool:
        """Whether what came from the server is lost."""
        asked = self._applied
        if asked is not None and await asked() and self._applied is asked:
            self.put(LinkState.LOSING_REPLIES)
        return self._state is LinkState.LOSING_REPLIES


class _Pair:
    """A client's connection and the one that the proxy made to the server for it."""

    def __init__(
        self,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self.client_reader = client_reader
        self.client_writer = client_writer
        self.server_reader = server_reader
        self.server_writer = server_writer

    def reset(self) -> None:
        """Close both connections at once; what they hold is dropped."""
        self.client_writer.transport.abort()
        self.server_writer.transport.abort()
