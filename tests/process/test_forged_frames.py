"""A peer that only has a controller's certificate can't stop a quorum.

The attack: a peer with the certificate of controller 3 and a directory id of its own (a non-voter)
sends over real TLS links that the term is 2^62-1. Real controllers must elect a leader and serve as
soon as the peer is silent, also after all of them were restarted.
"""

import asyncio
import signal
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from quorum.membership.greeting import WIRE_FORMAT, Greeting, decode_greeting
from quorum.terms import TERM_MAX
from quorum.wire.codec import dumps
from quorum.wire.frames import FrameKind, encode
from runtime.asyncio_clock import AsyncioClock
from runtime.links.interface import LinkEnd, Peer
from runtime.links.tcp import TcpLinks
from runtime.randomness import from_system
from runtime.sockets.tls import TlsFiles, peer_tls
from tests.process.running_cluster import RunningCluster, running
from tests.unit.quorum.wire.test_frames import FRAMES

pytestmark = pytest.mark.process

FRESH = b"a directory new!"
TERMS = (2**62 - 1, 2**31, TERM_MAX, 2**30)
ROUNDS = 40
GAP_S = 0.05


class Forger:
    """Sends every kind of frame, in terms without an election, to all linked nodes."""

    def __init__(self, config: Path) -> None:
        self.config = tomllib.loads(config.read_text())
        self.linked: set[int] = set()
        self.sent = 0
        self.links: TcpLinks

    def greeting(self) -> bytes:
        node_id, cluster_id = self.config["node_id"], self.config["cluster_id"]
        return dumps(Greeting(WIRE_FORMAT, cluster_id, node_id, FRESH, True, b""))

    def judge(self, _node_id: int | None, greeting: bytes, _certified: str | None) -> int | str:
        return decode_greeting(greeting).node_id

    def on_link_up(self, node_id: int) -> None:
        self.linked.add(node_id)

    def on_link_down(self, node_id: int, _end: LinkEnd) -> None:
        self.linked.discard(node_id)

    def on_frame(self, node_id: int, frame: bytes) -> None:
        pass

    async def speak(self) -> None:
        mine = self.config["node_id"]
        peers = []
        for controller in self.config["controllers"]:
            host, port = controller["quorum"].rsplit(":", 1)
            peers.append(Peer(controller["node_id"], host, int(port)))
        tls = TlsFiles(*(Path(self.config["tls"][name]) for name in ("cert", "key", "ca")))
        self.links = TcpLinks(
            mine,
            *next((peer.host, peer.port) for peer in peers if peer.node_id == mine),
            clock=AsyncioClock(asyncio.get_running_loop()),
            random=from_system(),
            log=structlog.get_logger(),
            tls=peer_tls(tls),
        )
        self.links.start(self)
        self.links.set_peers(tuple(peers))
        for _ in range(ROUNDS):
            for term in TERMS:
                for kind, fields in FRAMES:
                    for node_id in list(self.linked):
                        self.sent += self.links.send(
                            node_id, encode(FrameKind(kind), term, FRESH, *fields)
                        )
            await asyncio.sleep(GAP_S)
        self.links.stop()
        # Let the transports close.
        await asyncio.sleep(0.5)


@contextmanager
def forging(config: Path) -> Iterator[Forger]:
    """A forger that sends during the test, and is silent at the end."""
    forger = Forger(config)
    thread = threading.Thread(target=lambda: asyncio.run(forger.speak()), daemon=True)
    thread.start()
    try:
        yield forger
    finally:
        thread.join(60.0)
        assert not thread.is_alive()


def epoch(cluster: RunningCluster) -> int:
    found = cluster.status(cluster.leader())
    assert found is not None
    return int(found["leaderEpoch"])


def test_a_forged_term_of_a_fresh_directory_ends_no_quorum(tmp_path: Path) -> None:
    with running(tmp_path, brokers=1) as cluster:
        cluster.create("before")
        victim = cluster.standby()
        before = epoch(cluster)
        cluster.controller(victim).signal(signal.SIGTERM)
        assert cluster.controller(victim).wait(20.0)
        with forging(tmp_path / "config" / f"controller-{victim}.toml") as forger:
            cluster.until(lambda: len(forger.linked) == 2, "the forger is linked by TLS")
            cluster.create("while-it-forges")
        assert forger.sent > 0
        cluster.create("once-it-is-silent")
        for n in cluster.local.controllers:
            if n != victim:
                cluster.controller(n).kill()
        for n in cluster.local.controllers:
            cluster.controller(n).start()
        cluster.create("after-a-restart-of-all")
        # Only elections have raised it.
        assert before <= epoch(cluster) < before + 100
        cluster.check_nothing_lost()
