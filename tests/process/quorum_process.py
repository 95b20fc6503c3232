"""A real process around one QuorumNode, driven by lines of JSON on stdin and stdout.

    python -m tests.process.quorum_process FOLDER NODE_ID PORT,PORT,PORT

Commands: {"do": "propose", "payloads": [...]}, {"do": "bench", "callers": n, "bytes": n,
"seconds": s}, {"do": "read"}, {"do": "status"}, {"do": "stop"}. Every answer is one line; what
happens by itself comes as {"event": ...}.
"""

import asyncio
import hashlib
import json
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorum.api import LeaderAndEpoch, Mark, NotLeaderError
from quorum.config import QuorumConfig
from quorum.node import QuorumNode
from runtime.asyncio_clock import AsyncioClock
from runtime.defects import watch_loop
from runtime.disk.real import RealDisk
from runtime.links.interface import Peer
from runtime.links.tcp import TcpLinks
from runtime.logging import configure
from runtime.randomness import from_system

CLUSTER_ID = "process-cluster-0000001"


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Bench:
    """So many callers, each proposing again as soon as its last payload is delivered."""

    def __init__(self, quorum: QuorumNode, clock: AsyncioClock, callers: int, size: int) -> None:
        self.quorum, self.clock = quorum, clock
        self.payload = bytes(size)
        self.began: deque[float] = deque()
        self.took: list[float] = []
        self.going = True
        self.count = 0
        self.start = clock.monotonic()
        self.again(callers)

    def again(self, callers: int) -> None:
        now = self.clock.monotonic()
        for _ in range(callers):
            self.began.append(now)
            self.quorum.propose(self.payload)

    def committed(self, payloads: Sequence[bytes]) -> None:
        now = self.clock.monotonic()
        count = len(payloads)
        began = self.began
        self.took += [now - began.popleft() for _ in range(count)]
        self.count += count
        if self.going:
            self.again(count)

    def end(self) -> dict[str, Any]:
        self.going = False
        seconds = self.clock.monotonic() - self.start
        took = sorted(self.took)
        return {
            "answer": "bench",
            "per_s": round(self.count / seconds),
            "p50_ms": round(1000 * took[len(took) // 2], 2),
            "p99_ms": round(1000 * took[len(took) * 99 // 100], 2),
        }


class Owner:
    """Keeps a digest of all that was delivered."""

    def __init__(self) -> None:
        self.quorum: QuorumNode
        self.digest = hashlib.sha256()
        self.count = 0
        self.index = 0
        self.mine: dict[bytes, None] = {}
        self.bench: Bench | None = None

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        self.index = index
        self.count += len(payloads)
        if self.bench is not None and self.bench.began:
            self.bench.committed(payloads)
            return
        for payload in payloads:
            self.digest.update(len(payload).to_bytes(4, "big") + payload)
            if payload in self.mine:
                del self.mine[payload]
                say(event="acknowledged", payload=payload.decode(errors="replace"))

    def on_leadership(self, epoch: int) -> None:
        say(event="leading", epoch=epoch)

    def on_leadership_lost(self, epoch: int) -> None:
        say(event="lost", epoch=epoch)

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        say(event="leader", leader=now.leader, epoch=now.epoch)

    def on_catch_up(self, mark: Mark, source: int) -> None:
        say(event="install", index=mark.index)

    def on_catch_up_dropped(self) -> None:
        say(event="install_dropped")

    def on_caught_up(self, mark: Mark) -> None:
        say(event="installed", index=mark.index)

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        pass

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        pass

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None:
        pass

    def on_stopped(self, reason: str) -> None:
        say(event="stopped", reason=reason)

    def state(self) -> dict[str, Any]:
        status = self.quorum.status()
        return {
            "answer": "status",
            "role": status.role,
            "leader": status.leader,
            "epoch": status.epoch,
            "note": status.note,
            "count": self.count,
            "index": self.index,
            "commit": status.commit_index,
            "digest": self.digest.hexdigest(),
        }


async def serve(folder: Path, node_id: int, ports: list[int]) -> None:
    loop = asyncio.get_running_loop()
    watch_loop(loop)
    clock = AsyncioClock(loop)
    log = configure("warning")
    peers = tuple(Peer(number, "127.0.0.1", port) for number, port in enumerate(ports, 1))
    disk = RealDisk(folder, clock)
    random = from_system()
    links = TcpLinks(node_id, "127.0.0.1", ports[node_id - 1], clock=clock, random=random, log=log)
    owner = Owner()
    config = QuorumConfig(cluster_id=CLUSTER_ID, node_id=node_id, peers=peers)
    quorum = owner.quorum = QuorumNode(
        config, clock=clock, random=random, disk=disk, links=links, listener=owner, log=log
    )
    quorum.start()
    say(event="started")
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        command = json.loads(line)
        if command["do"] == "propose":
            propose(owner, command["payloads"])
        elif command["do"] == "bench":
            owner.bench = Bench(quorum, clock, command["callers"], command["bytes"])
            await asyncio.sleep(command["seconds"])
            say(**owner.bench.end())
        elif command["do"] == "read":
            quorum.read_index(lambda ready: say(answer="read", ready=ready, index=owner.index))
        elif command["do"] == "status":
            say(**owner.state())
        elif command["do"] == "stop":
            break
    quorum.stop()
    await asyncio.sleep(0.05)
    disk.close()
    say(event="stopped_in_order")


def propose(owner: Owner, payloads: list[str]) -> None:
    for text in payloads:
        payload = text.encode()
        owner.mine[payload] = None
        try:
            owner.quorum.propose(payload)
        except NotLeaderError as error:
            del owner.mine[payload]
            say(event="refused", payload=text, leader=error.leader)


if __name__ == "__main__":
    asyncio.run(
        serve(Path(sys.argv[1]), int(sys.argv[2]), [int(port) for port in sys.argv[3].split(",")])
    )
