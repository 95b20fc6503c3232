"""Sessions and watches by the thousand, and how late their news are.

1,000 clients, in two processes, have a session and ten watches each. A client in this process makes
100 changes a second for a minute, of keys in turn, and each key has ten watches, of ten clients.
Measured is the
time from the change's acknowledgement to its delivery to the program that watches. A delivery that
comes before the acknowledgement counts as 0.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.coordination.crowd_member import SeenByMember, key_name
from benchmarks.coordination.stores import RunningStore
from benchmarks.instruments.figures import percentile
from coordination.connect import connect
from coordination.coordinator import Coordinator

PROCESSES: Final = 2
CHANGES_PER_S: Final = 100
SEEN_BY: Final = 10
"""Watches of each key."""
_STRIDE: Final = 617
"""From one key to the next. A prime number, so that all keys have their turn."""
_MEMBER: Final = "benchmarks.coordination.crowd_member"
_OPEN_S: Final = 300.0
_VALUE_BYTES: Final = 100
_LAST_NEWS_S: Final = 3.0


async def measure_crowd(
    store: RunningStore, clients: int, watches: int, seconds: float, folder: Path
) -> dict[str, float]:
    """Hold so many clients with so many watches each.

    Returns milliseconds, counts, and cores that were busy.
    """
    files = [folder / f"{store.name}-{number}.seen" for number in range(PROCESSES)]
    share, keys = clients // PROCESSES, clients * watches // SEEN_BY
    began_s = time.monotonic()
    async with connect(store.url, ttl=10) as writer:
        parts = [(number * share, share, watches, keys) for number in range(PROCESSES)]
        async with _members(store, parts, files) as processes:
            opening_s = time.monotonic() - began_s
            cpu_s, began_s = store.cpu_s(), time.monotonic()
            acknowledged = await _change(writer, keys, seconds)
            took_s = time.monotonic() - began_s
            cpu_s = store.cpu_s() - cpu_s
            await asyncio.sleep(_LAST_NEWS_S)
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"\n")
            for process in processes:
                await asyncio.wait_for(process.wait(), _OPEN_S)
        seen = [msgspec.msgpack.decode(file.read_bytes(), type=SeenByMember) for file in files]
    late_ms = [
        max(arrived_s - acknowledged[revision], 0.0) * 1000
        for each in seen
        for _, revision, arrived_s in each.arrived
        if revision in acknowledged
    ]
    return {
        "p50": percentile(late_ms, 0.5),
        "p99": percentile(late_ms, 0.99),
        "worst": max(late_ms, default=0.0),
        "missing": SEEN_BY * len(acknowledged) - len(late_ms),
        "lost": sum(each.lost for each in seen),
        "rate": len(acknowledged) / took_s,
        "store_cores": cpu_s / took_s,
        "client_cores": sum(each.cpu_s for each in seen) / took_s,
        "opening": opening_s,
    }


async def _change(writer: Coordinator, keys: int, seconds: float) -> dict[int, float]:
    """Make changes at a steady rate; return when each was acknowledged, by its revision."""
    acknowledged: dict[int, float] = {}

    async def change(number: int) -> None:
        revision = await writer.storage.upsert(
            key_name(number * _STRIDE % keys), bytes(_VALUE_BYTES)
        )
        acknowledged[revision] = time.monotonic()

    began_s = time.monotonic()
    async with asyncio.TaskGroup() as changes:
        for number in range(int(seconds * CHANGES_PER_S)):
            await asyncio.sleep(began_s + number / CHANGES_PER_S - time.monotonic())
            changes.create_task(change(number))
    return acknowledged


@asynccontextmanager
async def _members(
    store: RunningStore, parts: Sequence[tuple[int, ...]], files: Sequence[Path]
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Start the processes of the crowd, and wait until all their watches are open."""
    processes = []
    try:
        for part, file in zip(parts, files, strict=True):
            command = [sys.executable, "-m", _MEMBER, store.url, *map(str, part), str(file)]
            processes.append(
                await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
                )
            )
        async with asyncio.timeout(_OPEN_S):
            for process in processes:
                await _ready(process)
        yield processes
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _ready(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while (line := await process.stdout.readline()).strip() != b"ready":
        if not line:
            raise RuntimeError("a process of the crowd ended")
