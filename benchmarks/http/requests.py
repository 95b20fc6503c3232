"""Measures HTTP operations per second on three real controllers: reads, creates and heartbeats.

64 clients create topics, one in each request: each is a decision, a batch, an fsync on two
controllers and a commit. A heartbeat is a MetadataFetch in MessagePack of a simulated broker that
is online and has nothing to fetch.
"""

import asyncio
import itertools

import msgspec

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers, ask
from benchmarks.instruments.figures import Figure, Floor
from benchmarks.instruments.floors import Floors, middle
from benchmarks.instruments.http_pipe import Load, encoded, load
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

CLIENTS = 64
BROKERS = 200


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    seen: dict[str, list[Load]] = {}
    cpu: dict[str, list[float]] = {}
    floors: list[Floors] = []
    names = itertools.count()
    async with Controllers(bench.fresh_folder("http")) as controllers:
        port = controllers.ports[await controllers.active()]
        async with SimulatedBrokers(port, BROKERS) as brokers:
            status = encoded("GET", "/v1/status")
            read = encoded("GET", "/v1/brokers/1")
            stale = encoded("GET", "/v1/brokers/1?consistency=stale")

            def create(_: int) -> bytes:
                return encoded("POST", "/v1/topics", _new_topic(f"t{next(names)}"))

            seconds = bench.seconds(2.0)
            for _ in range(bench.rounds):
                floors.append(await asyncio.to_thread(bench.floors))
                for what, count, make in (
                    ("status reads", CLIENTS, lambda _: status),
                    ("stale reads of a broker", CLIENTS, lambda _: stale),
                    ("linearizable reads of a broker", CLIENTS, lambda _: read),
                    ("topics created, one a request, 1 client", 1, create),
                    ("topics created, one a request, 64 clients", CLIENTS, create),
                ):
                    await brokers.beat_once()
                    used = controllers.cpu_s()
                    one = await load(port, count, seconds, make)
                    used = controllers.cpu_s() - used
                    seen.setdefault(what, []).append(one)
                    cpu.setdefault(what, []).append(used / max(1, len(one.times)) * 1e6)
                what = f"heartbeats of {BROKERS} brokers"
                await brokers.follow()
                used = controllers.cpu_s()
                one = await brokers.heartbeats(seconds)
                used = controllers.cpu_s() - used
                seen.setdefault(what, []).append(one)
                cpu.setdefault(what, []).append(used / max(1, len(one.times)) * 1e6)
        fenced = (await ask(port, "GET", "/v1/status"))["brokers"]
        bench.say(f"brokers at the end: {fenced}")
    return [
        figure
        for what, rounds in seen.items()
        for figure in _figures(bench, what, rounds, cpu[what], middle(floors))
    ]


def _new_topic(name: str) -> bytes:
    return msgspec.json.encode({"topics": [{"name": name, "numPartitions": 1}]})


def _figures(
    bench: Bench, what: str, rounds: list[Load], cpu: list[float], floors: Floors
) -> list[Figure]:
    creates = "created" in what
    alone = "1 client" in what
    for one in rounds:
        bench.say(f"{what}: {one.rate:,.0f}/s, p99 {one.ms(0.99):.1f} ms, {one.statuses}")
    floor: Floor = floors.echoes
    if creates:
        floor = floors.syncs if alone else floors.large_syncs
    return [
        Figure("http", what, "/s", tuple(one.rate for one in rounds), floor),
        Figure("http", "  p50", "ms", tuple(one.ms(0.5) for one in rounds)),
        Figure("http", "  p99", "ms", tuple(one.ms(0.99) for one in rounds)),
        Figure("http", "  processor time, three controllers", "µs", tuple(cpu)),
    ]
