"""Small changes that go on beside a large one, for the loads of `make lateness`."""

import asyncio
import time
from collections.abc import Awaitable

from benchmarks.instruments.http_pipe import Pipe
from benchmarks.instruments.simulated_brokers import SimulatedBroker
from benchmarks.lateness.stage import Stage
from metadata.messages.fetch import MetadataFetchReply, WantedState

_WAIT_MAX_S = 1.0
"""For a small change, whatever large one is under way; wall time, so it is shown and not judged."""


async def made(stage: Stage, *topics: tuple[str, int]) -> None:
    message = {
        "topics": [{"name": n, "numPartitions": p, "replicationFactor": 3} for n, p in topics]
    }
    status, answer = await stage.change("POST", "/v1/topics", message)
    assert status == 200, answer
    errors = [topic["error"] for topic in answer["topics"] if topic.get("error")]
    assert not errors, errors[0]


async def beat(
    stage: Stage, broker: SimulatedBroker, wanted: WantedState = WantedState.ONLINE
) -> MetadataFetchReply:
    """One heartbeat on a connection of its own."""
    pipe = await Pipe.open(stage.controllers.ports[stage.leader])
    try:
        return broker.take(*await pipe.exchange(broker.request(wanted=wanted)))
    finally:
        pipe.close()


async def beside(stage: Stage, large: Awaitable[object]) -> None:
    """Do something large, and small changes and registrations all the while: none waits long."""
    longest = 0.0
    task = asyncio.ensure_future(large)
    turn = 0
    while not task.done():
        turn += 1
        name = f"beside-{time.monotonic_ns()}"
        for act in (
            lambda name=name: made(stage, (name, 1)),
            lambda: beat(stage, SimulatedBroker(stage.fresh_id())),
            lambda name=name: stage.change("DELETE", f"/v1/topics/{name}"),
        ):
            began = time.monotonic()
            await act()
            longest = max(longest, time.monotonic() - began)
    await task
    late = "" if longest <= _WAIT_MAX_S else f": over {_WAIT_MAX_S:g} s"
    stage.note(f"{turn} rounds of small changes beside it, the longest took {longest:.2f} s{late}")
