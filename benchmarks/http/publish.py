"""Measures the time from a change until the brokers know of it.

A real agent (`BrokerAgent`, its image on disk) calls a publisher with each new image. Up to 1,000
simulated brokers also wait with a held MetadataFetch each. The time counts from the sending of the
change to the leader. It contains the decision, an fsync on two controllers and the commit, as does
the floor.
"""

import asyncio
import contextlib
import time

import msgspec

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import CLUSTER_ID, Controllers
from benchmarks.instruments.figures import Figure, percentile
from benchmarks.instruments.floors import Floors, middle
from benchmarks.instruments.http_pipe import Pipe
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from broker_agent.config import AgentConfig, Endpoint
from broker_agent.library import BrokerAgent
from broker_agent.publishers import Manifest
from metadata.image import MetadataImage
from runtime.logging import configure

_AGENT_ID = 100_000
_WATCHERS = (0, 100, 1000)


class _Watch:
    """A publisher that notes when an offset is in the image."""

    def __init__(self) -> None:
        self.offset = 0
        self.at = 0.0
        self._waiting: asyncio.Future[float] | None = None
        self._wanted = 0

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        self.offset, self.at = manifest.offset, time.perf_counter()
        if self._waiting is not None and not self._waiting.done() and self.offset >= self._wanted:
            self._waiting.set_result(self.at)

    async def reached(self, offset: int) -> float:
        """When an image that holds everything below `offset` was published."""
        if self.offset >= offset:
            return self.at
        self._wanted = offset
        self._waiting = asyncio.get_running_loop().create_future()
        return await self._waiting


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    floors: list[Floors] = []
    answered: list[float] = []
    published: dict[int, list[float]] = {count: [] for count in _WATCHERS}
    last: dict[int, list[float]] = {count: [] for count in _WATCHERS}
    folder = bench.fresh_folder("publish")
    # Brokers that only watch fall silent between rounds: none of them shall be fenced meanwhile.
    async with Controllers(folder, session_ms=300_000) as controllers:
        active = await controllers.active()
        watch = _Watch()
        stack = contextlib.AsyncExitStack()
        async with (
            stack,
            BrokerAgent(
                _agent_config(controllers),
                data=folder / "agent",
                publishers=(watch,),
                log=configure("critical"),
            ) as agent,
        ):
            await agent.wait_online()
            brokers = await stack.enter_async_context(
                SimulatedBrokers(controllers.ports[active], max(_WATCHERS))
            )
            for number in range(bench.rounds):
                floors.append(await asyncio.to_thread(bench.floors))
                for count in _WATCHERS:
                    trials = bench.count(100 if count < 1000 else 10, 5)
                    one = await _with_watchers(
                        controllers.ports[active], brokers, watch, count, trials, number
                    )
                    if not count:
                        answered.append(percentile(one[0], 0.5))
                    published[count].append(percentile(one[1], 0.5))
                    last[count].append(percentile(one[2], 0.5))
                    bench.say(
                        f"{count} watchers: answered {percentile(one[0], 0.5):.2f} ms, published "
                        f"{percentile(one[1], 0.5):.2f} ms, p99 {percentile(one[1], 0.99):.1f} ms, "
                        f"last watcher {percentile(one[2], 0.5):.2f} ms"
                    )
    commit = middle(floors).commit
    figures = [
        Figure("publish", "a change, sent to answered, p50", "ms", tuple(answered), commit),
        Figure("publish", "sent to published by an agent, p50", "ms", tuple(published[0]), commit),
    ]
    return figures + [
        Figure(
            "publish",
            f"sent to the last of {count:,} brokers, p50",
            "ms",
            tuple(last[count]),
            commit,
        )
        for count in _WATCHERS
        if count
    ]


def _agent_config(controllers: Controllers) -> AgentConfig:
    return AgentConfig(
        cluster_id=CLUSTER_ID,
        broker_id=_AGENT_ID,
        controllers=controllers.urls,
        endpoints=(Endpoint(name="X", host="127.0.0.1", port=9092),),
        # The simulated ones fall silent, and an agent that stops would wait for them.
        stop_limit_ms=200,
    )


async def _with_watchers(
    port: int,
    brokers: SimulatedBrokers,
    watch: _Watch,
    count: int,
    trials: int,
    round_number: int,
) -> tuple[list[float], list[float], list[float]]:
    """Times in ms: answered, published, heard by the last watcher."""
    answered, published, last = [], [], []
    pipe = await Pipe.open(port)
    for trial in range(trials):
        await brokers.beat_once(count)
        heard = brokers.watch(count)
        await asyncio.sleep(0.02 + count / 5000)
        name = f"p{round_number}-{count}-{trial}"
        body = {"topics": [{"name": name, "replicationFactor": 1}]}
        started = time.perf_counter()
        status, answer = await pipe.call("POST", "/v1/topics", msgspec.json.encode(body))
        assert status == 200, answer[:500]
        answered.append((time.perf_counter() - started) * 1000)
        offset = msgspec.json.decode(answer)["offset"]
        async with asyncio.timeout(10):
            published.append((await watch.reached(offset) - started) * 1000)
            last.append(max([(at - started) * 1000 for at in await heard], default=0.0))
    pipe.close()
    return answered, published, last
