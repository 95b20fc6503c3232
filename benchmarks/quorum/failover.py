"""Measures the time from the loss of the active controller to the next committed change.

The processes are real, with TLS and three broker agents, as `logberg up` starts them. A client
sends one change, with one request id, to the surviving controllers every 5 ms. SIGKILL stands for a
process that dies. SIGSTOP stands for a machine that goes silent: no connection is refused, so only
the election timeout detects it. At the end the log must show that no broker was fenced.
"""

import asyncio
import contextlib
import signal
import time
from pathlib import Path

import aiohttp

from audit.places.replicas import one_replica
from audit.reading.dump import dump
from benchmarks.instruments.bench import Bench
from benchmarks.instruments.figures import Figure, Floor, percentile
from benchmarks.instruments.floors import middle, reset_ms
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.cluster_view import observe
from logberg.local.local_cluster import LocalCluster
from logberg.local.ports import free_port_base
from metadata.uuids import uuid7, uuid_text
from runtime.randomness import from_system

_KILLS, _STOPS = 20, 10
_LIMIT_S = 30.0
_ASK_EVERY_S = 0.005
_TRY_S = 0.3


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    cluster = LocalCluster(bench.fresh_folder("failover"), 3, 3, free_port_base())
    cluster.prepare()
    access = cluster.file.access()
    floors = [await asyncio.to_thread(bench.floors)]
    gone = [await asyncio.to_thread(reset_ms) for _ in range(5)]
    seen: dict[signal.Signals, list[float]] = {signal.SIGKILL: [], signal.SIGSTOP: []}
    try:
        for child in cluster.children:
            child.start()
        async with LogbergClient(cluster.controller_urls, access) as client:
            for kind, count in ((signal.SIGKILL, _KILLS), (signal.SIGSTOP, _STOPS)):
                for _ in range(bench.count(count, 2)):
                    took_ms = await _trial(cluster, client, access, kind)
                    bench.say(f"{kind.name}: {took_ms:.0f} ms")
                    seen[kind].append(took_ms)
            await settled(cluster, client)
            fenced = fenced_in(cluster.folder / "controller-1")
    finally:
        await asyncio.to_thread(cluster.stop)
    floors.append(await asyncio.to_thread(bench.floors))
    commit = middle(floors).commit
    killed = Floor("its reset seen + commit", percentile(gone, 0.5) + commit.value)
    return [
        _figure("SIGKILL", seen[signal.SIGKILL], killed, 300.0),
        _figure("SIGSTOP", seen[signal.SIGSTOP], commit, 1200.0),
        Figure("failover", "brokers fenced by it", "count", (float(fenced),), None, 0.0),
    ]


def _figure(kind: str, trials: list[float], floor: Floor, target: float) -> Figure:
    what = f"{kind} of the active one to the next commit"
    note = f"worst of {len(trials)}: {max(trials):.0f} ms"
    return Figure("failover", what, "ms", tuple(trials), floor, target, note)


async def _trial(
    cluster: LocalCluster, client: LogbergClient, access: Access, kind: signal.Signals
) -> float:
    active = await settled(cluster, client)
    child = cluster.controllers[active]
    survivors = [cluster.controller_url(n) for n in cluster.controllers if n != active]
    connector = aiohttp.TCPConnector(ssl=access.context() or True)
    async with aiohttp.ClientSession(connector=connector) as session:
        # Connections are there before, as a client's that works with the cluster are.
        for url in survivors:
            async with session.get(f"{url}/health/live") as answer:
                await answer.read()
        began = time.monotonic()
        child.signal(kind)
        await _committed(session, survivors, access)
        took_ms = (time.monotonic() - began) * 1000
    if kind is signal.SIGKILL:
        child.wait(5.0)
        child.start()
    else:
        child.signal(signal.SIGCONT)
    return took_ms


async def _committed(session: aiohttp.ClientSession, urls: list[str], access: Access) -> None:
    """Create a topic: ask the controllers until one has committed it."""
    request_id = uuid_text(uuid7(time.time_ns() // 1_000_000, from_system().getrandbits(74)))
    headers = {
        "authorization": f"Bearer {access.token}",
        "x-logberg-request-id": request_id,
    }
    topic = {"name": f"t-{request_id}", "numPartitions": 1, "replicationFactor": 1}
    until = time.monotonic() + _LIMIT_S
    limit = aiohttp.ClientTimeout(total=_TRY_S)
    while time.monotonic() < until:
        for url in urls:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.post(
                    f"{url}/v1/topics", json={"topics": [topic]}, headers=headers, timeout=limit
                ) as answer:
                    await answer.read()
                    if answer.status == 200:
                        return
        await asyncio.sleep(_ASK_EVERY_S)
    raise RuntimeError(f"nothing was committed within {_LIMIT_S:.0f} s")


async def settled(cluster: LocalCluster, client: LogbergClient) -> int:
    """Wait until all is well again; return the active one."""
    until = time.monotonic() + _LIMIT_S
    while time.monotonic() < until:
        found = await observe(client, cluster.controller_urls)
        ends = {view.log_end for view in found.controllers}
        if found.is_ready(len(cluster.brokers)) and len(ends) == 1:
            await asyncio.sleep(0.5)
            assert found.active is not None
            return found.active
        await asyncio.sleep(0.05)
    raise RuntimeError(f"not settled within {_LIMIT_S:.0f} s: {found}")


def fenced_in(folder: Path) -> int:
    return sum(
        record["data"].get("fenced") == "FENCE"
        for batch in dump(one_replica(str(folder)).reader())
        for record in batch["records"]
        if record["type"] == "BROKER_REGISTRATION_CHANGE_RECORD"
    )
