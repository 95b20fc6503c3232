"""Measures the creation of many topics: over HTTP, decided, and replayed on three controllers.

The time is from the first request until *every* controller's image holds the last topic.
"""

import asyncio
import time
from collections.abc import Iterator

import msgspec

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers
from benchmarks.instruments.figures import Figure
from benchmarks.instruments.floors import Floors, middle
from benchmarks.instruments.http_pipe import Pipe, request_id
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

BROKERS = 9
CLIENTS = 4
_SHAPES = (
    # Topics in all, partitions a topic, topics a request.
    (10_000, 1, 500),
    (800, 50, 20),
)


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    floors: list[Floors] = []
    seen: dict[int, list[float]] = {}
    # Brokers that are silent while topics are created shall not be fenced.
    async with Controllers(bench.fresh_folder("topics"), session_ms=300_000) as controllers:
        active = await controllers.active()
        async with SimulatedBrokers(controllers.ports[active], BROKERS) as brokers:
            for number in range(bench.rounds):
                for usual, partitions, together in _SHAPES:
                    floors.append(await asyncio.to_thread(bench.floors))
                    await brokers.beat_once()
                    topics = bench.count(usual, usual // 10)
                    bodies = requests(f"{number}-{partitions}", topics, partitions, together)
                    used, started = controllers.cpu_s(), time.perf_counter()
                    await create(controllers, bodies)
                    took = time.perf_counter() - started
                    used = controllers.cpu_s() - used
                    seen.setdefault(partitions, []).append(topics / took)
                    bench.say(
                        f"{topics} topics of {partitions}: {took:.2f} s, {topics / took:,.0f} "
                        f"topics/s, {used / topics / partitions * 1e6:.0f} µs a partition on three"
                    )
    syncs = middle(floors).large_syncs
    one, many = (seen[partitions] for _, partitions, _ in _SHAPES)
    return [
        Figure("topics", "topics of 1 partition, 500 a request", "/s", tuple(one), syncs),
        Figure(
            "topics",
            "partitions, 50 a topic, 20 topics a request",
            "/s",
            tuple(rate * _SHAPES[1][1] for rate in many),
            syncs,
        ),
    ]


def requests(prefix: str, topics: int, partitions: int, together: int) -> Iterator[bytes]:
    """Bodies that create so many topics, some together, with names that begin so."""
    for start in range(0, topics, together):
        count = min(together, topics - start)
        yield msgspec.json.encode(
            {
                "topics": [
                    {
                        "name": f"{prefix}-{start + number}",
                        "numPartitions": partitions,
                        "replicationFactor": 3,
                    }
                    for number in range(count)
                ]
            }
        )


async def create(controllers: Controllers, bodies: Iterator[bytes]) -> None:
    """Send all, over a few connections, and wait until every image holds them."""
    ends = await asyncio.gather(*(_client(controllers, bodies) for _ in range(CLIENTS)))
    for n in controllers.ports:
        while (await controllers.status(n, 5.0))["offset"] < max(ends):  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def _client(controllers: Controllers, bodies: Iterator[bytes]) -> int:
    """Create topics until there are no more; returns the log's end behind the last."""
    end = 0
    pipe = await Pipe.open(controllers.ports[await controllers.active()])
    for body in bodies:
        named = request_id()
        while True:
            status, answer = await pipe.call("POST", "/v1/topics", body, headers=named)
            if status == 200:
                break
            # On a machine that is far too busy another may lead by now; what is too much waits.
            assert status in (421, 429, 503), answer[:500]
            pipe.close()
            await asyncio.sleep(0.1)
            pipe = await Pipe.open(controllers.ports[await controllers.active()])
        reply = msgspec.json.decode(answer)
        errors = [topic["error"] for topic in reply["topics"] if topic["error"]]
        assert not errors, errors[0]
        end = reply["offset"]
    pipe.close()
    return end
