"""Measures ten times as many changes as the cluster can make: no broker may be fenced.

One hundred brokers send a heartbeat twice a second, each on its own connection, with sessions of
3 s. In another process clients create topics, each as fast as it is answered: first as many clients
as give the highest rate (the peak), then ten times as many. The controller refuses some requests
with 429. Their clients send again at once, although a good client would wait for `retry-after`. The
figures are the time of a heartbeat, the rate of changes as a share of the peak, and how many
fencings the log shows.
"""

import asyncio
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from audit.places.replicas import one_replica
from audit.reading.dump import dump
from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers
from benchmarks.instruments.figures import Figure, Floor, percentile
from benchmarks.instruments.http_pipe import Load, NoAnswerError, encoded, load, request_id
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from runtime.http.requests import JSON

_BROKERS = 100
_BEAT_S = 0.5
_SESSION_MS = 3_000
_CLIENTS, _TIMES = 60, 10
_SECONDS = 8.0


class Seen:
    """What brokers saw."""

    def __init__(self) -> None:
        self.beats_s: list[float] = []
        self.failed: Counter[str] = Counter()

    def p99_ms(self) -> float:
        """Of the heartbeats, in milliseconds."""
        return percentile(self.beats_s, 0.99) * 1000


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    folder = bench.fresh_folder("overload")
    peaks: list[float] = []
    made: list[float] = []
    p99s: list[float] = []
    failed = 0
    settings = {"session_ms": _SESSION_MS, "heartbeat_ms": _SESSION_MS // 6}
    async with Controllers(folder, **settings) as controllers:
        port = controllers.ports[await controllers.active()]
        async with SimulatedBrokers(port, _BROKERS) as brokers:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                for number in range(bench.rounds):
                    peak, calm = await _round(bench, brokers, apart, port, f"p{number}", _CLIENTS)
                    most = _CLIENTS * _TIMES
                    much, seen = await _round(bench, brokers, apart, port, f"o{number}", most)
                    peaks.append(_made(peak))
                    made.append(_made(much))
                    p99s.append(seen.p99_ms())
                    failed += calm.failed.total() + seen.failed.total()
    fenced = fenced_in(folder / "controller-1")
    name = f"at {_TIMES} times the clients of the peak"
    most_made = Floor("the peak", percentile(peaks, 0.5))
    return [
        Figure("overload", f"heartbeats {name}, p99", "ms", tuple(p99s), None, 1000.0),
        Figure(
            "overload", f"changes made {name}", "/s", tuple(made), most_made, 0.8 * most_made.value
        ),
        Figure("overload", "heartbeats not answered", "count", (float(failed),), None, 0.0),
        Figure("overload", "brokers fenced by it", "count", (float(fenced),), None, 0.0),
    ]


async def _round(
    bench: Bench,
    brokers: SimulatedBrokers,
    apart: ProcessPoolExecutor,
    port: int,
    prefix: str,
    clients: int,
) -> tuple[Load, Seen]:
    """Offer changes for some seconds, from another process, while brokers heartbeat."""
    seconds = bench.seconds(_SECONDS)
    loop = asyncio.get_running_loop()
    offered = loop.run_in_executor(apart, offer, port, prefix, clients, seconds)
    seen = Seen()
    beating = [asyncio.create_task(_beat(brokers, n, seen)) for n in range(_BROKERS)]
    try:
        changes = await offered
    finally:
        for task in beating:
            task.cancel()
        await asyncio.gather(*beating, return_exceptions=True)
    bench.say(
        f"{clients} clients: {_made(changes):,.0f} changes/s, {changes.statuses}, answers p99 "
        f"{percentile(changes.times, 0.99) * 1000:.0f} ms; {len(seen.beats_s)} heartbeats, p50 "
        f"{percentile(seen.beats_s, 0.5) * 1000:.0f} ms, p99 {seen.p99_ms():.0f} ms, slowest "
        f"{max(seen.beats_s) * 1000:.0f} ms, failed {dict(seen.failed)}"
    )
    return changes, seen


def _made(changes: Load) -> float:
    """Changes a second that were acknowledged."""
    return changes.statuses.get(200, 0) / changes.seconds


async def _beat(brokers: SimulatedBrokers, number: int, seen: Seen) -> None:
    """Heartbeat twice a second, each broker at its own moment."""
    await asyncio.sleep(_BEAT_S * number / _BROKERS)
    while True:
        began = time.perf_counter()
        try:
            await brokers.beat(number)
            seen.beats_s.append(time.perf_counter() - began)
        except (OSError, RuntimeError, NoAnswerError) as error:
            seen.failed[str(error)[:60]] += 1
        await asyncio.sleep(max(0.0, _BEAT_S - (time.perf_counter() - began)))


def offer(port: int, prefix: str, clients: int, seconds: float) -> Load:
    """Let so many clients create topics, each as fast as it is answered; in a process apart."""
    made = 0

    def next_topic(_client: int) -> bytes:
        nonlocal made
        made += 1
        new = {"name": f"{prefix}-{made}", "numPartitions": 1, "replicationFactor": 3}
        body = msgspec.json.encode({"topics": [new]})
        return encoded("POST", "/v1/topics", body, JSON, request_id())

    return asyncio.run(load(port, clients, seconds, next_topic))


def fenced_in(folder: Path) -> int:
    """How often a silent broker was fenced, by the log."""
    batches = dump(one_replica(str(folder)).reader())
    return sum(batch["operation"] == "FenceBroker" for batch in batches)
