"""Nodes with links over real sockets, and what their handlers got."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from runtime.asyncio_clock import AsyncioClock
from runtime.links.interface import Peer
from runtime.links.tcp import TcpLinks
from runtime.randomness import seeded
from runtime.sockets.tls import PeerTls, peer_tls
from tests.conformance.link_kits import Recorder
from tests.unit.runtime.certificates import Authority


class Node:
    """One node: its links, and the calls that its handler got."""

    def __init__(self, node_id: int, port: int = 0, **more: Any) -> None:
        self.links = TcpLinks(
            node_id,
            "127.0.0.1",
            port,
            clock=AsyncioClock(),
            random=seeded(node_id),
            log=structlog.get_logger(),
            **more,
        )
        self.recorder = Recorder(node_id)
        self.links.start(self.recorder)

    @property
    def peer(self) -> Peer:
        return Peer(self.links.self_id, "127.0.0.1", self.links.port)


Start = Callable[..., Node]


async def settle(until: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not until():  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)


async def link(one: Node, two: Node) -> None:
    one.links.set_peers((one.peer, two.peer))
    two.links.set_peers((one.peer, two.peer))
    await settle(lambda: one.recorder.is_linked(two.links.self_id))
    await settle(lambda: two.recorder.is_linked(one.links.self_id))


async def read_all(reader: asyncio.StreamReader) -> bytes:
    with suppress(ConnectionError):
        return await reader.read()
    return b""


def tls_of(authority: Authority, node_id: int) -> PeerTls:
    return peer_tls(authority.issue(f"logberg://test/controller/{node_id}", f"node-{node_id}"))
