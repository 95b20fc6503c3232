"""Heartbeats of very many brokers: all to the leader, or divided among the controllers (ADR 0048).

Rule: the same brokers at the same three controllers do both in turns, so the machine is the same. A
broker sends a heartbeat every two seconds and asks for an answer at once.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.instruments.cluster import Controllers, cpu_s
from benchmarks.instruments.figures import percentile
from benchmarks.instruments.http_pipe import Pipe
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from metadata.messages.wire import decode_fetch_reply
from runtime.http.requests import MSGPACK

HEARTBEAT_S = 2.0
_SETTLE_S = 5.0
_TOGETHER = 100
"""So many register at a time."""
Row = tuple[str, str]
"""What is measured, and its unit."""


class Heard(NamedTuple):
    """What one phase came to."""

    times: list[float]
    """Seconds from the sending of each heartbeat to its answer."""
    refused: int
    leader_s: float
    """Processor time of the leader."""
    all_s: float


def main() -> int:
    """Measure, and print the median of each row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http.standby_heartbeats")
    parser.add_argument("--brokers", type=int, default=1_500)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="logberg-bench-") as folder:
        rows = asyncio.run(_run(Path(folder), given.brokers, given.seconds, given.rounds))
    for (what, unit), rounds in rows.items():
        spread = f"{min(rounds):,.1f} to {max(rounds):,.1f}"
        print(f"{what:70} {statistics.median(rounds):>10,.1f} {unit:5} ({spread})")
    return 0


async def _run(folder: Path, count: int, seconds: float, rounds: int) -> dict[Row, list[float]]:
    rows: dict[Row, list[float]] = {}
    # No broker beats while the others register.
    settings = {"standbys_take_heartbeats": True, "session_ms": 120_000}
    async with Controllers(folder, **settings) as controllers, AsyncExitStack() as stack:
        leader = await controllers.active()
        everywhere = sorted(controllers.ports.values())
        groups = [
            await stack.enter_async_context(
                SimulatedBrokers(controllers.ports[leader], min(_TOGETHER, count - n), n + 1)
            )
            for n in range(0, count, _TOGETHER)
        ]
        for _ in range(rounds):
            for name, targets in (
                ("all to the leader", [controllers.ports[leader]]),
                ("divided among three", everywhere),
            ):
                for group in groups:
                    await group.beat_once()
                requests = [broker.request() for group in groups for broker in group.brokers]
                heard = await _phase(controllers, leader, requests, targets, seconds)
                for what, unit, value in _figures(heard, seconds):
                    rows.setdefault((f"{count:,} brokers, {name}: {what}", unit), []).append(value)
    return rows


def _figures(heard: Heard, seconds: float) -> list[tuple[str, str, float]]:
    count = len(heard.times)
    return [
        ("processor time of the leader, a second", "ms", heard.leader_s / seconds * 1000),
        ("  of all three controllers, a second", "ms", heard.all_s / seconds * 1000),
        ("  of the leader, a heartbeat", "µs", heard.leader_s / count * 1e6),
        ("  of all three, a heartbeat", "µs", heard.all_s / count * 1e6),
        ("  p50", "ms", percentile(heard.times, 0.5) * 1000),
        ("  p99", "ms", percentile(heard.times, 0.99) * 1000),
        ("  refused", "count", heard.refused),
    ]


async def _phase(
    controllers: Controllers,
    leader: int,
    requests: list[bytes],
    targets: list[int],
    seconds: float,
) -> Heard:
    """Let all beat for some time, each over a connection of its own."""
    pipes = [await Pipe.open(targets[n % len(targets)]) for n in range(len(requests))]
    times: list[float] = []
    refused = 0
    began = time.perf_counter()
    ends = began + _SETTLE_S + seconds

    async def beat(number: int) -> None:
        nonlocal refused
        at = began + HEARTBEAT_S * number / len(requests)
        while at < ends:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            sent = time.perf_counter()
            status, body = await pipes[number].exchange(requests[number])
            if sent >= began + _SETTLE_S:
                times.append(time.perf_counter() - sent)
                refused += decode_fetch_reply(status, body, MSGPACK).error is not None
            at += HEARTBEAT_S

    beating = asyncio.gather(*(beat(number) for number in range(len(requests))))
    await asyncio.sleep(_SETTLE_S)
    before = cpu_s(controllers.children[leader].pid), controllers.cpu_s()
    await asyncio.sleep(seconds)
    after = cpu_s(controllers.children[leader].pid), controllers.cpu_s()
    await beating
    for pipe in pipes:
        pipe.close()
    return Heard(times, refused, after[0] - before[0], after[1] - before[1])


if __name__ == "__main__":
    sys.exit(main())
