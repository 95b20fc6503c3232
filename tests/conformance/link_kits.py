"""The links that one suite examines; another kind joins by a kit in `LINK_KITS`."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from runtime.asyncio_clock import AsyncioClock
from runtime.links.interface import LinkEnd, LinkHandler, Peer, PeerLinks
from runtime.links.tcp import TcpLinks
from runtime.randomness import seeded
from tests.conformance.ports import free_port
from tests.conformance.simulated_kit import SimulatedLinkKit


class Recorder:
    """A handler that accepts every greeting `node <id>` and records its calls."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.refuse: str | None = None
        self.heard: list[tuple[object, ...]] = []
        self.on_frame_do: Callable[[int, bytes], None] = lambda _node, _frame: None

    def greeting(self) -> bytes:
        return f"node {self.node_id}".encode()

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        if self.refuse is not None:
            return self.refuse
        return int(greeting.removeprefix(b"node "))

    def on_link_up(self, node_id: int) -> None:
        self.heard.append(("up", node_id))

    def on_frame(self, node_id: int, frame: bytes) -> None:
        self.heard.append(("frame", node_id, frame))
        self.on_frame_do(node_id, frame)

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        self.heard.append(("down", node_id, end))

    def frames(self) -> list[bytes]:
        return [entry[2] for entry in self.heard if entry[0] == "frame"]

    def is_linked(self, node_id: int) -> bool:
        changes = [e[0] for e in self.heard if e[0] in {"up", "down"} and e[1] == node_id]
        return bool(changes) and changes[-1] == "up"


class LinkKit(Protocol):
    """A network of nodes 1, 2, 3."""

    def peers(self) -> tuple[Peer, ...]:
        """The addresses of all nodes, started or not."""

    def node(self, node_id: int) -> PeerLinks:
        """The links of a new process of a node, not started; no other process of it runs."""

    def kill(self, node_id: int) -> None:
        """End a node's process without notice."""

    def settle(self, until: Callable[[], bool]) -> None:
        """Let time pass until the condition holds (it must)."""

    def pass_time(self, seconds: float) -> None:
        """Let some time pass."""

    def end(self) -> None:
        """Clean up."""


class TcpLinkKit:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._peers = tuple(Peer(node_id, "127.0.0.1", free_port()) for node_id in (1, 2, 3))
        self._alive: dict[int, TcpLinks] = {}
        self._processes = 0

    def peers(self) -> tuple[Peer, ...]:
        return self._peers

    def node(self, node_id: int) -> PeerLinks:
        self._processes += 1
        peer = self._peers[node_id - 1]
        links = TcpLinks(
            node_id,
            peer.host,
            peer.port,
            clock=AsyncioClock(self._loop),
            random=seeded("links", self._processes),
            log=structlog.get_logger(),
        )
        self._alive[node_id] = links
        return OnLoop(links, self._loop)

    def kill(self, node_id: int) -> None:
        links = self._alive.pop(node_id)
        for connection in links._connections:
            transport = connection._transport
            assert transport is not None
            # The kernel closes a killed process's sockets without a word from the process.
            transport.write = lambda _data: None
        links.stop()

    def settle(self, until: Callable[[], bool]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(20):
                while not until():  # noqa: ASYNC110 - a condition, not an event
                    await asyncio.sleep(0.001)

        self._loop.run_until_complete(wait())

    def pass_time(self, seconds: float) -> None:
        self._loop.run_until_complete(asyncio.sleep(seconds))

    def end(self) -> None:
        for links in self._alive.values():
            links.stop()
        self.pass_time(0.01)
        self._loop.close()


class OnLoop:
    """Calls links as their loop would."""

    def __init__(self, links: TcpLinks, loop: asyncio.AbstractEventLoop) -> None:
        self._links, self._loop = links, loop

    def start(self, handler: LinkHandler) -> None:
        self._call(lambda: self._links.start(handler))

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        self._call(lambda: self._links.set_peers(peers))

    def send(self, node_id: int, frame: bytes) -> bool:
        return bool(self._call(lambda: self._links.send(node_id, frame)))

    def stop(self) -> None:
        self._call(self._links.stop)

    def _call(self, action: Callable[[], object]) -> object:
        async def call() -> object:
            return action()

        if self._loop.is_running():
            return action()
        return self._loop.run_until_complete(call())


LINK_KITS: dict[str, Callable[[], LinkKit]] = {
    "simulated": SimulatedLinkKit,
    "tcp": TcpLinkKit,
}
