"""`python -m benchmarks.soak` puts load on real processes for minutes and counts what goes wrong.

There are three controllers and three agents with TLS. Clients create and delete topics and read, as
fast as they are answered. It counts elections, fencings, late loops and answers that were no
success, and tells each minute how much memory each controller has in use. Exit 1 if there was an
election or a fencing.

The log grows meanwhile, and each controller remembers the outcomes of a day's requests. So memory
grows by those until there are a million of them.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from audit.places.replicas import open_replicas
from audit.questions.agreement import agree
from benchmarks.instruments.memory import resident_bytes
from benchmarks.quorum.failover import fenced_in, settled
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from metadata.messages.topics import NewTopic

_CLIENTS = 32


async def _load(client: LogbergClient, number: int, until: float, counts: Counter[str]) -> None:
    """Create, read, delete, until it is time."""
    turn = 0
    while time.monotonic() < until:
        turn += 1
        name = f"soak-{number}-{turn}"
        try:
            await client.create_topics(NewTopic(name, 3, 3))
            await client.topic(name)
            await client.delete_topic(name)
        except ClientError as error:
            counts[error.code] += 1
        else:
            counts["rounds"] += 1


async def _soak(folder: Path, seconds: float) -> Counter[str]:
    cluster = LocalCluster(folder, 3, 3, free_port_base())
    cluster.prepare()
    access = cluster.file.access()
    counts: Counter[str] = Counter()
    try:
        for child in cluster.children:
            child.start()
        async with LogbergClient(cluster.controller_urls, access, 30.0) as client:
            await settled(cluster, client)
            before = (await client.quorum()).leader_epoch
            until = time.monotonic() + seconds
            telling = asyncio.create_task(_tell(cluster, counts, seconds))
            await asyncio.gather(*(_load(client, n, until, counts) for n in range(_CLIENTS)))
            telling.cancel()
            counts["elections"] = (await client.quorum()).leader_epoch - before
            await settled(cluster, client)
        counts["fenced"] = fenced_in(folder / "controller-1")
        counts.update(_stalls(cluster))
    finally:
        await asyncio.to_thread(cluster.stop)
    found = agree(open_replicas(str(folder)))
    assert found.ok, found.problem
    counts["records"] = found.comparison.common_offset
    return counts


def _stalls(cluster: LocalCluster) -> Counter[str]:
    """What the controllers warned of: their loop stood still."""
    said = [
        msgspec.json.decode(line)
        for child in cluster.controllers.values()
        for line in child.output.read_bytes().splitlines()
        if b'"event": "loop_stalled"' in line
    ]
    longest_ms = max((int(event["seconds"] * 1000) for event in said), default=0)
    return Counter({"stalls reported": len(said), "the longest in ms": longest_ms})


async def _tell(cluster: LocalCluster, counts: Counter[str], seconds: float) -> None:
    """Print a line each minute."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(60)
        errors = sum(count for what, count in counts.items() if what.isupper())
        controllers = cluster.controllers.values()
        memory = ", ".join(f"{resident_bytes(child.pid) // 2**20}" for child in controllers)
        print(
            f"  {time.monotonic() - began:.0f} of {seconds:.0f} s: "
            f"{counts['rounds']:,} rounds, {errors} errors; controllers have {memory} MiB in use",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    """Run the soak and say what was counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--seconds", type=float, default=600.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="logberg-soak-") as folder:
        counts = asyncio.run(_soak(Path(folder), seconds))
    said = ", ".join(f"{what} {count:,}" for what, count in counts.items())
    print(f"{seconds:.0f} s, {_CLIENTS} clients: {said}")
    return 1 if counts["elections"] or counts["fenced"] else 0


if __name__ == "__main__":
    sys.exit(main())
