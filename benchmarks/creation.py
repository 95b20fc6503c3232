"""Measures what 100,000 new partitions cost all six processes: `python -m benchmarks.creation`.

Three controllers and three agents run as `logberg up` starts them, with TLS. A client creates the
partitions with three replicas each, 1,000 in a request, at the pace of the default quota (20,000
partitions a second). The time ends when each agent has applied the last record.

Rule: the figures are processor time, so that other work on the machine counts little. The load
average stands beside them. Exit 1 if the leader used more than 6 s or all processes more than 14 s
for 100,000 partitions.

--partitions N  how many (100000)
--rounds N      how often, each time with other topics on top of those that are there (1)
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.instruments.cluster import cpu_s
from benchmarks.quorum.failover import settled
from logberg.client.client import LogbergClient
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from metadata.messages.topics import NewTopic

LEADER_MAX_S, ALL_MAX_S = 6.0, 14.0
"""Processor time for 100,000 partitions."""
_USUAL = 100_000
_IN_A_TOPIC = 50
_IN_A_REQUEST = 1_000
_PACE = 20_000
"""Partitions a second."""
_POLL_S = 0.25
_POLLS = 1_200


class Cost(NamedTuple):
    """Seconds of processor time."""

    leader: float
    standbys: tuple[float, ...]
    agents: tuple[float, ...]
    took_s: float
    load_average: float

    @property
    def all(self) -> float:
        """Of six processes."""
        return self.leader + sum(self.standbys) + sum(self.agents)


async def measure(
    cluster: LocalCluster, client: LogbergClient, partitions: int, prefix: str
) -> Cost:
    """Create partitions and wait until each agent has applied them."""
    active = await settled(cluster, client)
    before = {child.name: cpu_s(child.pid) for child in cluster.children}
    began = time.monotonic()
    end = 0
    together = _IN_A_REQUEST // _IN_A_TOPIC
    for number, start in enumerate(range(0, partitions, _IN_A_REQUEST)):
        await asyncio.sleep(began + start / _PACE - time.monotonic())
        topics = [NewTopic(f"{prefix}-{number}-{n}", _IN_A_TOPIC, 3) for n in range(together)]
        end = (await client.create_topics(*topics)).offset
    for _ in range(_POLLS):
        if await _applied(client, end):
            break
        await asyncio.sleep(_POLL_S)
    took_s = time.monotonic() - began
    used = {child.name: cpu_s(child.pid) - before[child.name] for child in cluster.children}
    return Cost(
        used[f"controller-{active}"],
        tuple(used[f"controller-{n}"] for n in cluster.controllers if n != active),
        tuple(used[f"broker-{n}"] for n in cluster.brokers),
        took_s,
        os.getloadavg()[0],
    )


async def _applied(client: LogbergClient, end: int) -> bool:
    """Tell whether each agent has reported that it applied everything below an offset."""
    brokers = (await client.brokers()).brokers
    return all((broker.applied_offset or 0) >= end for broker in brokers)


async def _run(folder: Path, partitions: int, rounds: int) -> list[Cost]:
    cluster = LocalCluster(folder, 3, 3, free_port_base())
    cluster.prepare()
    costs = []
    try:
        for child in cluster.children:
            child.start()
        async with LogbergClient(cluster.controller_urls, cluster.file.access(), 60.0) as client:
            for number in range(rounds):
                cost = await measure(cluster, client, partitions, f"t{number}")
                costs.append(cost)
                print(_line(cost, partitions), flush=True)
    finally:
        await asyncio.to_thread(cluster.stop)
    return costs


def _line(cost: Cost, partitions: int) -> str:
    each = " ".join(f"{seconds:.1f}" for seconds in (*cost.standbys, *cost.agents))
    return (
        f"{partitions:,} partitions: the leader {cost.leader:.1f} s of processor time, all six "
        f"{cost.all:.1f} s (standbys and agents {each}); {cost.took_s:.1f} s until each agent has "
        f"applied them; {cost.all / partitions * 1e6:.0f} µs a partition; load average "
        f"{cost.load_average:.1f}"
    )


def main() -> int:
    """Measure; exit 1 when a bound is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.creation", description="What new partitions cost everywhere."
    )
    parser.add_argument("--partitions", type=int, default=_USUAL)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="logberg-creation-") as folder:
        costs = asyncio.run(_run(Path(folder), arguments.partitions, arguments.rounds))
    share = arguments.partitions / _USUAL
    best = min(costs, key=lambda cost: cost.all)
    return 1 if best.leader > LEADER_MAX_S * share or best.all > ALL_MAX_S * share else 0


if __name__ == "__main__":
    sys.exit(main())
