"""Counts what three real controllers do for one change, and what they do while nobody asks.

Rule: one client has one request under way, so nothing is shared between changes. What a change
costs in frames and in wake-ups does not depend on how busy the machine is.
"""

import asyncio
import itertools
import re
from pathlib import Path
from typing import NamedTuple

from benchmarks.instruments.bench import Bench
from benchmarks.instruments.cluster import Controllers, text
from benchmarks.instruments.figures import Figure
from benchmarks.instruments.http_pipe import encoded, load
from benchmarks.instruments.simulated_brokers import SimulatedBrokers

_FRAMES = re.compile(r'^logberg_links_events_total{event="frames_sent"} (\d+)$', re.MULTILINE)


class Spent(NamedTuple):
    """What the three processes have used up since their start."""

    cpu_s: float
    frames: int
    """Frames that they sent to each other."""
    wakes: int
    """Times that a thread of theirs waited and was woken."""

    def since(self, before: "Spent") -> "Spent":
        """Return the difference."""
        return Spent(
            self.cpu_s - before.cpu_s, self.frames - before.frames, self.wakes - before.wakes
        )


async def spent(controllers: Controllers) -> Spent:
    """Read the counters."""
    frames = 0
    for port in controllers.ports.values():
        found = _FRAMES.search(await text(port, "/metrics"))
        assert found is not None, "this controller does not show its frames"
        frames += int(found[1])
    wakes = sum(_wakes(child.pid) for child in controllers.children.values())
    return Spent(controllers.cpu_s(), frames, wakes)


def _wakes(pid: int) -> int:
    """Voluntary context switches of all threads of a process."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", status.read_text(), re.MULTILINE)
        total += int(found[1]) if found is not None else 0
    return total


def run(bench: Bench) -> list[Figure]:
    """Measure."""
    return asyncio.run(_run(bench))


async def _run(bench: Bench) -> list[Figure]:
    rows: dict[tuple[str, str], list[float]] = {}
    names = itertools.count()
    async with Controllers(bench.fresh_folder("chatter")) as controllers:
        port = controllers.ports[await controllers.active()]
        await asyncio.sleep(bench.seconds(5.0))
        for _ in range(bench.rounds):
            before, seconds = await spent(controllers), bench.seconds(20.0)
            await asyncio.sleep(seconds)
            idle = (await spent(controllers)).since(before)
            rows.setdefault(
                ("idle: processor time of three controllers, a second", "ms"), []
            ).append(idle.cpu_s / seconds * 1000)
            rows.setdefault(("  frames a second", "count"), []).append(idle.frames / seconds)
            rows.setdefault(("  wake-ups a second", "count"), []).append(idle.wakes / seconds)
            async with SimulatedBrokers(port, 3) as brokers:
                await brokers.beat_once()
                before = await spent(controllers)
                one = await load(port, 1, bench.seconds(5.0), lambda _: _creation(next(names)))
            busy, changes = (await spent(controllers)).since(before), len(one.times)
            rows.setdefault(("one client: topics created, one a request", "/s"), []).append(
                one.rate
            )
            rows.setdefault(("  p50", "ms"), []).append(one.ms(0.5))
            rows.setdefault(("  processor time, three controllers", "µs"), []).append(
                busy.cpu_s / changes * 1e6
            )
            rows.setdefault(("  frames a change", "count"), []).append(busy.frames / changes)
            rows.setdefault(("  wake-ups a change", "count"), []).append(busy.wakes / changes)
            bench.say(f"{one.rate:,.0f} topics/s, {one.statuses}")
    return [Figure("chatter", what, unit, tuple(rounds)) for (what, unit), rounds in rows.items()]


def _creation(number: int) -> bytes:
    topic = b'{"topics":[{"name":"t%d","numPartitions":1}]}' % number
    return encoded("POST", "/v1/topics", topic)
