"""Topics created in bulk: over HTTP, through the managers, and replayed on three controllers.

The clock runs from the first request until *every* controller's image holds the last topic.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator

import msgspec

from benchmarks.bench import Bench
from benchmarks.cluster import Controllers
from benchmarks.figures import Figure
from benchmarks.floors import Floors, middle
from benchmarks.http_pipe import Pipe
from benchmarks.simulated_brokers import SimulatedBrokers

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
    names = itertools.count()
    async with Controllers(bench.fresh_folder("topics")) as controllers:
        active = await controllers.active()
        async with SimulatedBrokers(controllers.ports[active], BROKERS) as brokers:
            for _ in range(bench.rounds):
                for usual, partitions, together in _SHAPES:
                    floors.append(await asyncio.to_thread(bench.floors))
                    await brokers.beat_once()
                    topics = bench.count(usual, usual // 10)
                    bodies = _requests(names, topics, partitions, together)
                    used, started = controllers.cpu_s(), time.perf_counter()
                    await create(controllers, active, bodies)
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


def _requests(names: Iterator[int], topics: int, partitions: int, together: int) -> Iterator[bytes]:
    for start in range(0, topics, together):
        count = min(together, topics - start)
        yield msgspec.json.encode(
            {
                "topics": [
                    {
                        "name": f"topic-{next(names)}",
                        "numPartitions": partitions,
                        "replicationFactor": 3,
                    }
                    for _ in range(count)
                ]
            }
        )


async def create(controllers: Controllers, active: int, bodies: Iterator[bytes]) -> None:
    """Send all, over a few connections, and wait until every image holds them."""
    offset = 0

    async def client() -> None:
        nonlocal offset
        pipe = await Pipe.open(controllers.ports[active])
        try:
            for body in bodies:
                status, answer = await pipe.call("POST", "/v1/topics", body)
                assert status == 200, answer[:500]
                reply = msgspec.json.decode(answer)
                errors = [topic["error"] for topic in reply["topics"] if topic["error"]]
                assert not errors, errors[0]
                offset = max(offset, reply["offset"])
        finally:
            pipe.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    for n in controllers.ports:
        while (await controllers.status(n))["offset"] < offset:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.002)
