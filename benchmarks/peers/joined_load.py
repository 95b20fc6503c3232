"""Creations through our own client, which joins what is outstanding into few requests.

    python -m benchmarks.peers.joined_load --urls URL,… --workers N --seconds S --warm S
                                           --prefix TEXT --pids PID,…

As the load generator's `create`: each worker repeats one creation of one entry, with its own
request id and its own durable outcome. The load is a Python process of its own, which uses
`logberg.public` only, and the figures say how much processor time it takes itself.
"""

import argparse
import asyncio
import math
import random
import sys
import time
from urllib.parse import urlsplit

import msgspec

from benchmarks.instruments.cluster import cpu_s
from benchmarks.instruments.simulated_brokers import SimulatedBrokers
from logberg.public import ClientError, LogbergClient, NewTopic

_FIRST_BROKERS = range(100_000_000, 200_000_000, 10)
"""One of them is drawn: the brokers of an earlier run on the same cluster still have sessions."""
_BROKERS = 3
_BEAT_S = 1.0


class Load:
    """The creations of one run."""

    def __init__(self, client: LogbergClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._next = 0
        self.took: list[float] = []
        self.failed = 0
        self.failure = ""

    async def worker(self, begin: float, end: float) -> None:
        """Create one topic after another; count those that began after `begin`."""
        while (started := time.perf_counter()) < end:
            self._next += 1
            topic = NewTopic(f"{self._prefix}{self._next}", 1, 1)
            try:
                reply = await self._client.create_topics(topic)
            except ClientError as error:
                self._note(str(error))
                await asyncio.sleep(0.01)
                continue
            if reply.topics[0].error is not None:
                self._note(reply.topics[0].error.message)
            elif started > begin:
                self.took.append(time.perf_counter() - started)

    def _note(self, failure: str) -> None:
        self.failed += 1
        self.failure = failure


async def _measure(arguments: argparse.Namespace) -> dict[str, float | str]:
    urls = arguments.urls.split(",")
    pids = [int(pid) for pid in arguments.pids.split(",")]
    port = urlsplit(urls[0]).port
    assert port is not None
    async with SimulatedBrokers(port, _BROKERS, random.choice(_FIRST_BROKERS)) as brokers:
        beating = asyncio.create_task(_beat(brokers))
        async with LogbergClient(urls) as client:
            load = Load(client, arguments.prefix)
            begin = time.perf_counter() + arguments.warm
            end = begin + arguments.seconds
            workers = [
                asyncio.create_task(load.worker(begin, end)) for _ in range(arguments.workers)
            ]
            await asyncio.sleep(arguments.warm)
            nodes, own = sum(map(cpu_s, pids)), time.process_time()
            await asyncio.gather(*workers)
            nodes, own = sum(map(cpu_s, pids)) - nodes, time.process_time() - own
            elapsed = time.perf_counter() - begin
        beating.cancel()
    done = len(load.took)
    if not done:
        raise RuntimeError(f"nothing succeeded; {load.failed} failed: {load.failure}")
    load.took.sort()
    return {
        "rate": done / elapsed,
        "p50": load.took[done // 2] * 1000,
        "p99": load.took[math.ceil(done * 0.99) - 1] * 1000,
        "cpu": nodes / done * 1e6,
        "client": own / done * 1e6,
        "failed": load.failed,
        "failure": load.failure,
    }


async def _beat(brokers: SimulatedBrokers) -> None:
    while True:
        await asyncio.sleep(_BEAT_S)
        await brokers.beat_once()


def main() -> int:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.joined_load")
    parser.add_argument("--urls", required=True, help="of all controllers, the leader first")
    parser.add_argument("--pids", required=True, help="processes whose processor time is counted")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--warm", type=float, default=3.0)
    parser.add_argument("--prefix", default="j")
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_measure(parser.parse_args()))) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
