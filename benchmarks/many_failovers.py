"""`python -m benchmarks.many_failovers --partitions N` kills leaders of a cluster with very many.

Three real controllers over plain HTTP hold N partitions on 100 brokers, 50 a topic. The leader gets
SIGKILL; one change, with one request id, is sent to the other two until one has committed it. Then
the killed one starts again. For each trial it prints the milliseconds from the signal to the
commit, the seconds from exec until the killed one has caught up, its memory, and the load of the
machine. Run it with 1,000 partitions, too: a busy machine makes both slow. Exit 1 if the median is
above 100 ms or the worst above 500.

--partitions N       how many partitions (1000000)
--trials N           how many failovers (8)
--checkpoint-bytes N bytes of log between checkpoints; with 1, one is always being written
--folder DIR         folder of the cluster; it is kept, and used again
"""

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.http.topics import create, requests
from benchmarks.instruments.cluster import Controllers
from benchmarks.instruments.http_pipe import NoAnswerError, Pipe, request_id
from benchmarks.instruments.memory import resident_bytes
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

BROKERS = 100
MEDIAN_MS, WORST_MS = 100.0, 500.0
_A_TOPIC = 50
_READY_S = 120.0
_REST_S = 1.5
_ASK_EVERY_S = 0.005
_TRY_S = 0.3


async def _fill(controllers: Controllers, partitions: int) -> None:
    active = await controllers.active(_READY_S)
    if (await controllers.status(active, 5.0))["partitions"] >= partitions:
        return
    started = time.monotonic()
    async with SimulatedBrokers(controllers.ports[active], BROKERS):
        await create(controllers, requests("many", partitions // _A_TOPIC, _A_TOPIC, 20))
    print(f"{partitions:,} partitions were made in {time.monotonic() - started:.0f} s", flush=True)


async def _commit(ports: list[int]) -> None:
    """Create a topic: ask the controllers until one has committed it."""
    named = request_id()
    topic = {"name": f"f-{time.time_ns()}", "numPartitions": 1, "replicationFactor": 1}
    body = msgspec.json.encode({"topics": [topic]})
    pipes: dict[int, Pipe] = {}
    while True:
        for port in ports:
            try:
                if port not in pipes or pipes[port].closed:
                    pipes[port] = await Pipe.open(port)
                call = pipes[port].call("POST", "/v1/topics", body, headers=named)
                status, _ = await asyncio.wait_for(call, _TRY_S)
            except (OSError, NoAnswerError, TimeoutError):
                if port in pipes:
                    pipes.pop(port).close()
                continue
            if status == 200:
                for pipe in pipes.values():
                    pipe.close()
                return
        await asyncio.sleep(_ASK_EVERY_S)


async def _settled(controllers: Controllers) -> int:
    """Wait until all have the same log; return the active one."""
    active = await controllers.active(_READY_S)
    for n in controllers.ports:
        await controllers.caught_up(n, _READY_S)
    while len({(await controllers.status(n, 5.0))["logEnd"] for n in controllers.ports}) > 1:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await asyncio.sleep(_REST_S)
    return active


async def _trial(controllers: Controllers) -> float:
    active = await _settled(controllers)
    child = controllers.children[active]
    others = [port for n, port in controllers.ports.items() if n != active]
    began = time.monotonic()
    child.signal(signal.SIGKILL)
    await _commit(others)
    took_ms = (time.monotonic() - began) * 1000
    await asyncio.to_thread(child.wait, 5.0)
    began = time.monotonic()
    child.start()
    await controllers.caught_up(active, _READY_S)
    print(
        f"failover {took_ms:.0f} ms; caught up after {time.monotonic() - began:.1f} s with "
        f"{resident_bytes(child.pid) // 2**20} MB; load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return took_ms


async def _run(folder: Path, partitions: int, trials: int, settings: dict[str, Any]) -> list[float]:
    controllers = Controllers(folder, session_ms=3_000_000, partition_mutations_per_s=0, **settings)
    async with controllers:
        await _fill(controllers, partitions)
        return [await _trial(controllers) for _ in range(trials)]


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many_failovers", description="Kill leaders of very many."
    )
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--checkpoint-bytes", type=int)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    settings = (
        {} if given.checkpoint_bytes is None else {"checkpoint_bytes": given.checkpoint_bytes}
    )
    with tempfile.TemporaryDirectory(prefix="logberg-failovers-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        took = asyncio.run(_run(folder, given.partitions, given.trials, settings))
    median, worst = statistics.median(took), max(took)
    print(f"{given.partitions:,} partitions: median {median:.0f} ms, worst {worst:.0f} ms")
    return 1 if median > MEDIAN_MS or worst > WORST_MS else 0


if __name__ == "__main__":
    sys.exit(main())
