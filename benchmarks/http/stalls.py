"""Measures how late the controllers' event loops are under load, with a large image.

The image has 100,000 partitions. Then clients create topics, one in each request, clients read, and
200 brokers send heartbeats, all at once and as fast as they are answered. Each process measures how
late a timer is that is due every 10 ms (`logberg_loop_late_seconds` in `/metrics`). An idle process
measures the same for the machine itself.
"""

import asyncio
import itertools

import msgspec

from benchmarks.http.topics import create, requests
from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers, LateTicks
from benchmarks.instruments.figures import Figure, Floor, percentile
from benchmarks.instruments.floors import IdleProcess
from benchmarks.instruments.http_pipe import encoded, load
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

PARTITIONS = 100_000
BROKERS = 200
_WRITERS, _READERS = 16, 16
_SECONDS = 5.0


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    seen: dict[str, list[LateTicks]] = {"leader": [], "standby": []}
    machine: list[list[float]] = []
    names = itertools.count()
    # Brokers that are silent while topics are created shall not be fenced.
    async with Controllers(bench.fresh_folder("stalls"), session_ms=300_000) as controllers:
        port = controllers.ports[await controllers.active()]
        async with SimulatedBrokers(port, BROKERS) as brokers:
            topics = bench.count(PARTITIONS, PARTITIONS // 20) // 50
            await create(controllers, requests("s", topics, 50, 10))
            await asyncio.sleep(1.0)
            for _ in range(bench.rounds):
                leader = await controllers.active()
                await brokers.follow()
                before = await controllers.stalls()
                with IdleProcess() as idle:
                    loads = await asyncio.gather(
                        load(port, _WRITERS, bench.seconds(_SECONDS), lambda _: _topic(names)),
                        load(port, _READERS, bench.seconds(_SECONDS), _read),
                        brokers.heartbeats(bench.seconds(_SECONDS)),
                    )
                machine.append(idle.late_ms)
                after = await controllers.stalls()
                for n, now, then in zip(controllers.ports, after, before, strict=True):
                    late = now.since(then)
                    seen["leader" if n == leader else "standby"].append(late)
                    bench.say(
                        f"controller {n}{' leads' if n == leader else ''}: p50 {late.ms(0.5):.1f}, "
                        f"p99.9 {late.ms(0.999):.0f}, worst {late.worst_ms:.0f} ms"
                    )
                bench.say(
                    "answers a second: "
                    + ", ".join(f"{one.rate:,.0f}" for one in loads)
                    + f"; an idle process: worst {max(idle.late_ms):.0f} ms"
                )
    return [figure for who in seen for figure in _figures(who, seen[who], machine)]


def _figures(who: str, seen: list[LateTicks], machine: list[list[float]]) -> list[Figure]:
    what = f"{who}'s loop late, {PARTITIONS:,} partitions, p99.9"
    idle = [percentile(late, 0.999) for late in machine]
    worst = [max(late) for late in machine]
    return [
        Figure("stalls", what, "ms", tuple(one.ms(0.999) for one in seen), _idle(idle)),
        Figure("stalls", "  the worst", "ms", tuple(one.worst_ms for one in seen), _idle(worst)),
    ]


def _idle(values: list[float]) -> Floor:
    return Floor("idle process", percentile(values, 0.5))


def _topic(names: "itertools.count[int]") -> bytes:
    body = {"topics": [{"name": f"new-{next(names)}", "numPartitions": 1}]}
    return encoded("POST", "/v1/topics", msgspec.json.encode(body))


def _read(number: int) -> bytes:
    return encoded("GET", f"/v1/topics/s-{number}")
