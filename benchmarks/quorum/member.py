"""One process of the `propose` measurement: a `QuorumNode` on a real disk and real links.

`benchmarks.quorum.propose` starts it with a JSON specification as its only argument. It reads and
writes JSON lines. It writes `{"leads": true}` when it leads. For each `{"callers": n, "seconds":
s}` on stdin it runs that many callers, each with one proposal of 100 bytes at a time, and writes
the results. The callers are callbacks, as in the controller.
"""

import asyncio
import cProfile
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import structlog

from benchmarks.instruments.figures import percentile
from quorum.api import LeaderAndEpoch, Mark
from quorum.config import QuorumConfig
from quorum.node import QuorumNode
from runtime.asyncio_clock import AsyncioClock
from runtime.disk.real import RealDisk
from runtime.links.interface import Peer
from runtime.links.tcp import TcpLinks
from runtime.logging import configure
from runtime.randomness import from_system

PAYLOAD_BYTES = 100


class Spec(msgspec.Struct):
    """Who this process is."""

    node_id: int
    ports: dict[int, int]
    folder: str


class Order(msgspec.Struct):
    """What to drive."""

    callers: int
    seconds: float
    profile: str = ""
    """Write a profile of the leader's process to this file."""


class Seen(msgspec.Struct):
    """What a drive saw; times in ms."""

    commits: int
    seconds: float
    p50_ms: float
    p99_ms: float
    entries: int
    syncs: int = 0
    cpu_s: float = 0.0


class Listener:
    """Takes what is committed; while it drives, answers each caller's proposal with the next."""

    def __init__(self) -> None:
        self.node: QuorumNode | None = None
        self.sent: deque[float] = deque()
        self.taken: list[float] = []
        self.entries = 0
        self.until = 0.0
        self.on_idle: Callable[[], None] | None = None
        self._payload = bytes(PAYLOAD_BYTES)

    def drive(self, callers: int, until: float, on_idle: Callable[[], None]) -> None:
        """Let `callers` callers propose until `until`."""
        self.taken, self.entries, self.until, self.on_idle = [], 0, until, on_idle
        for _ in range(callers):
            self._propose()

    def _propose(self) -> None:
        assert self.node is not None
        self.sent.append(time.perf_counter())
        self.node.propose(self._payload)

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        if self.on_idle is None:
            return
        now = time.perf_counter()
        self.entries += 1
        sent, taken = self.sent, self.taken
        for _ in payloads:
            taken.append(now - sent.popleft())
        if now < self.until:
            for _ in payloads:
                self._propose()
        elif not sent:
            self.on_idle()
            self.on_idle = None

    def on_leadership(self, epoch: int) -> None:
        print('{"leads": true}', flush=True)

    def on_leadership_lost(self, epoch: int) -> None:
        print('{"leads": false}', flush=True)

    def on_leader_changed(self, now: LeaderAndEpoch) -> None: ...

    def on_catch_up(self, mark: Mark, source: int) -> None: ...

    def on_catch_up_dropped(self) -> None: ...

    def on_caught_up(self, mark: Mark) -> None: ...

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        pass

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        pass

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None: ...

    def on_stopped(self, reason: str) -> None:
        sys.exit(f"the quorum stopped: {reason}")


async def run(spec: Spec) -> None:
    """Join the peers, then obey orders until stdin ends."""
    log: structlog.typing.FilteringBoundLogger = configure("warning")
    clock, random = AsyncioClock(), from_system()
    config = QuorumConfig(
        cluster_id="benchmark",
        node_id=spec.node_id,
        peers=tuple(Peer(n, "127.0.0.1", port) for n, port in spec.ports.items()),
    )
    listener = Listener()
    node = QuorumNode(
        config,
        clock=clock,
        random=random,
        disk=RealDisk(Path(spec.folder), clock),
        links=TcpLinks(
            spec.node_id,
            "127.0.0.1",
            spec.ports[spec.node_id],
            clock=clock,
            random=random,
            log=log,
        ),
        listener=listener,
        log=log,
    )
    listener.node = node
    node.start()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        seen = await _drive(listener, msgspec.json.decode(line, type=Order))
        print(msgspec.json.encode(seen).decode(), flush=True)
    node.stop()


async def _drive(listener: Listener, order: Order) -> Seen:
    done = asyncio.Event()
    started, cpu = time.perf_counter(), time.process_time()
    profiler = None
    if order.profile:
        profiler = cProfile.Profile()
        profiler.enable()
    listener.drive(order.callers, started + order.seconds, done.set)
    await done.wait()
    took = time.perf_counter() - started
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(order.profile)
    return Seen(
        commits=len(listener.taken),
        seconds=took,
        p50_ms=percentile(listener.taken, 0.5) * 1000,
        p99_ms=percentile(listener.taken, 0.99) * 1000,
        entries=listener.entries,
        cpu_s=time.process_time() - cpu,
    )


if __name__ == "__main__":
    asyncio.run(run(msgspec.json.decode(sys.argv[1], type=Spec)))
