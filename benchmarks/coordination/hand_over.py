"""How long nobody leads: from a leader's SIGKILL, and from its resignation, to the next one's body.

Killed: each leader is a process of its own, in an election of its own. The next candidates wait in
this process. The kills come at random moments. What the time is beyond the ttl that the store
granted is the store's own: its noticing, its write, the news.

Resigned: two clients in this process resign in turns.
"""

import asyncio
import random
import sys
import time
from contextlib import AsyncExitStack
from typing import Final

from benchmarks.coordination.stores import RunningStore
from benchmarks.instruments.figures import percentile
from coordination.connect import connect
from coordination.coordinator import Coordinator

TTL_S: Final = 2.0
"""Of the candidates' sessions. A store may grant a longer one."""
_APART_S: Final = 0.5
"""From one kill to the next, on average."""
_CANDIDATE: Final = "benchmarks.coordination.candidate"
_MOST_S: Final = 30.0
_RESIGNED: Final = "resigned"


async def measure_killed(store: RunningStore, trials: int, dice: random.Random) -> dict[str, float]:
    """Kill leaders of so many elections; return milliseconds, and the ttl that was granted."""
    took: list[float] = []
    async with connect(store.url, ttl=TTL_S) as client, AsyncExitStack() as stack:
        ttl_ms = client.session.ttl * 1000
        elections = [f"killed-{trial}" for trial in range(trials)]
        leaders = [await _leading_process(stack, store, name) for name in elections]

        async def trial(name: str, leader: asyncio.subprocess.Process) -> None:
            body = asyncio.Event()
            leading = asyncio.create_task(_lead(client, name, body))
            await _candidates(client, name, 2)
            await asyncio.sleep(dice.uniform(0, trials * _APART_S))
            killed_s = time.monotonic()
            leader.kill()
            await asyncio.wait_for(body.wait(), _MOST_S)
            took.append((time.monotonic() - killed_s) * 1000)
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)

        await asyncio.gather(*map(trial, elections, leaders))
    return {**_summary(took), "ttl": ttl_ms, "beyond": max(took) - ttl_ms}


async def measure_resigned(store: RunningStore, trials: int) -> dict[str, float]:
    """Resign again and again; return milliseconds."""
    took = []
    async with connect(store.url, ttl=10) as one, connect(store.url, ttl=10) as other:
        leader, next_one = one.election(_RESIGNED), other.election(_RESIGNED)
        term = await leader.acquire("leader")
        for trial in range(trials):
            body = asyncio.create_task(next_one.acquire(f"candidate-{trial}"))
            await _candidates(one, _RESIGNED, 2)
            await asyncio.sleep(0.1)  # the candidate's watch begins behind its entry
            began_s = time.monotonic()
            resigning = asyncio.create_task(leader.drop(term))
            term = await asyncio.wait_for(body, _MOST_S)
            took.append((time.monotonic() - began_s) * 1000)
            await resigning
            leader, next_one = next_one, leader
        await leader.drop(term)
    return _summary(took)


def _summary(took: list[float]) -> dict[str, float]:
    return {"p50": percentile(took, 0.5), "p99": percentile(took, 0.99), "worst": max(took)}


async def _lead(client: Coordinator, name: str, body: asyncio.Event) -> None:
    async with client.election(name).campaign("next"):
        body.set()
        await asyncio.Event().wait()


async def _candidates(client: Coordinator, name: str, count: int) -> None:
    """Wait until the election has so many."""
    async with asyncio.timeout(_MOST_S):
        while len(await client.election(name).candidates()) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _leading_process(
    stack: AsyncExitStack, store: RunningStore, name: str
) -> asyncio.subprocess.Process:
    """Start a process that leads; it ends with the stack at the latest."""
    command = [sys.executable, "-m", _CANDIDATE, store.url, name, str(TTL_S)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)

    async def end() -> None:
        if process.returncode is None:
            process.kill()
        await process.wait()

    stack.push_async_callback(end)
    assert process.stdout is not None
    async with asyncio.timeout(_MOST_S):
        while (line := await process.stdout.readline()).strip() != b"leads":
            if not line:
                raise RuntimeError("the candidate's process ended")
    return process
