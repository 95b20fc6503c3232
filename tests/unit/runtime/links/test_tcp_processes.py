"""Links over real sockets to processes that are killed or stopped."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from runtime.links import tcp as tcp_links
from runtime.links.interface import LinkEnd, Peer
from tests.conformance.ports import free_port
from tests.unit.runtime.links.tcp_kit import Node, Start, settle

CHILD = """
import asyncio, sys, structlog
from runtime.asyncio_clock import AsyncioClock
from runtime.links.interface import Peer
from runtime.randomness import seeded
from runtime.links.tcp import TcpLinks
from tests.conformance.link_kits import Recorder

async def main():
    node_id, port, other_id, other_port = map(int, sys.argv[1:])
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    links = TcpLinks(node_id, "127.0.0.1", port, clock=AsyncioClock(), random=seeded(node_id),
                     log=structlog.get_logger())
    recorder = Recorder(node_id)
    recorder.on_frame_do = lambda sender, frame: links.send(sender, frame)
    links.start(recorder)
    links.set_peers((Peer(other_id, "127.0.0.1", other_port),))
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def start_child(node: Node, child_id: int) -> asyncio.subprocess.Process:
    port = free_port()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD,
        *map(str, (child_id, port, node.links.self_id, node.links.port)),
        cwd=Path(__file__).parents[3],
    )
    node.links.set_peers((Peer(child_id, "127.0.0.1", port),))
    await settle(lambda: node.recorder.is_linked(child_id))
    return child


@pytest.mark.parametrize(("node_id", "child_id"), [(1, 2), (2, 1)])
async def test_a_killed_process_is_reset_and_at_once_refused(
    start: Start, node_id: int, child_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = start(node_id)
    child = await start_child(node, child_id)
    await asyncio.sleep(0.2)
    # The dial that finds nobody is not one that waited.
    monkeypatch.setattr(tcp_links, "BACK_OFF_MIN_S", 60.0)
    monkeypatch.setattr(tcp_links, "BACK_OFF_MAX_S", 60.0)
    node.recorder.heard.clear()
    child.kill()
    await settle(lambda: len(node.recorder.heard) >= 2)
    assert node.recorder.heard[:2] == [
        ("down", child_id, LinkEnd.RESET),
        ("down", child_id, LinkEnd.REFUSED),
    ]
    await child.wait()


async def test_a_link_that_did_not_last_is_not_redialled_at_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_links, "LASTED_S", 1000.0)
    node = start(2)
    child = await start_child(node, 1)
    monkeypatch.setattr(tcp_links, "BACK_OFF_MIN_S", 60.0)
    monkeypatch.setattr(tcp_links, "BACK_OFF_MAX_S", 60.0)
    dials = node.links.counters["dials"]
    child.kill()
    await child.wait()
    await settle(lambda: not node.recorder.is_linked(1))
    await asyncio.sleep(0.1)
    assert node.links.counters["dials"] == dials


async def test_a_stopped_process_keeps_its_link_and_loses_nothing(start: Start) -> None:
    node = start(1)
    child = await start_child(node, 2)
    os.kill(child.pid, signal.SIGSTOP)
    try:
        frames = [bytes([n]) * 10_000 for n in range(50)]
        assert all(node.links.send(2, frame) for frame in frames)
        await asyncio.sleep(0.5)
        assert node.recorder.is_linked(2)
        assert node.recorder.frames() == []
    finally:
        os.kill(child.pid, signal.SIGCONT)
    await settle(lambda: len(node.recorder.frames()) == 50)
    assert node.recorder.frames() == frames
    child.kill()
    await child.wait()
