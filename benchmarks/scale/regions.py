"""`python -m benchmarks.scale.regions` measures five controllers in three regions.

Time is simulated. The cores are the product's own. `tests/simulation/regions` simulates network,
disks and clocks. So the figures don't depend on this machine, and the same seeds give the same
tables again. The simulator's processors take no time: what is shown is what the distances, the
syncs and the lost packets cost. Prints the tables of docs/scale.md.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.regions import (
    CONTROLLERS,
    INSIDE_MS,
    ROUND_TRIP_MS,
    Regions,
    Weather,
    quantile,
)

LOAD_S, PER_S = 20.0, 10.0
UNSTEADY = (
    ("10 %, 0.1 %", Weather()),
    ("50 %, 1 %", Weather(jitter=0.5, lost=0.01)),
    ("100 %, 2 %", Weather(jitter=1.0, lost=0.02)),
    ("100 %, 5 %", Weather(jitter=1.0, lost=0.05)),
    ("50 %, 5 % never arrive", Weather(jitter=0.5, dropped=0.05)),
)
TAKEOVER_MOST_S = 60.0


class Loss(NamedTuple):
    """How a leader is lost, and who leads instead."""

    name: str
    strike: Callable[[Regions, str], None]


def _kill(regions: Regions, _region: str) -> None:
    regions.cluster.hosts[1].kill()


def _pause(regions: Regions, _region: str) -> None:
    regions.cluster.hosts[1].lose_power()


LOSSES = (
    Loss("process killed", _kill),
    Loss("machine without power", _pause),
    Loss("region cut off", Regions.cut_off),
)


def _begin(seed: int, region: str, weather: Weather | None = None) -> Regions:
    regions = Regions(seed, region, weather)
    regions.start()
    assert regions.cluster.leader() == 1, "the leader stands in another region"
    return regions


def _of(values: list[float]) -> str:
    return f"{quantile(values, 0.5):.0f}; {quantile(values, 0.99):.0f}"


def latencies() -> None:
    """Print what changes and reads take, by where the leader stands."""
    print("\n| leader in | change | read | change, from the farthest region | change, ", end="")
    print("without the nearest other region |\n|---|--:|--:|--:|--:|")
    for region in CONTROLLERS:
        near, far = _neighbours(region)
        regions = _begin(1, region)
        regions.load(region, LOAD_S, PER_S)
        changes, reads = regions.clients[region].changes_ms, regions.clients[region].reads_ms
        regions.load(far, LOAD_S, PER_S)
        cells = [_of(changes), _of(reads), _of(regions.clients[far].changes_ms)]
        regions = _begin(2, region)
        regions.cut_off(near)
        regions.world.run_for(2.0)
        regions.load(region, LOAD_S, PER_S)
        kept = regions.cluster.leader() == 1
        cells.append(_of(regions.clients[region].changes_ms) if kept else "another one leads")
        print(f"| {region} | {' | '.join(cells)} |", flush=True)


def _neighbours(region: str) -> list[str]:
    """Return the other regions, the nearest first."""
    others = [other for other in CONTROLLERS if other != region]
    return sorted(others, key=lambda other: ROUND_TRIP_MS["".join(sorted(region + other))])


def takeovers(seeds: int) -> None:
    """Print how long it takes until another controller leads, and its first change is committed."""
    print("\n| loss | leader in | median | worst | more than one election | fenced |")
    print("|---|---|--:|--:|--:|--:|")
    for loss in LOSSES:
        for region in CONTROLLERS:
            took, again, fenced = [], 0, 0
            for seed in range(1, seeds + 1):
                regions = _begin(seed, region)
                epoch, began = regions.epoch(), regions.world.now
                loss.strike(regions, region)
                lost = region if loss.strike is Regions.cut_off else ""
                regions.until(lambda r=regions, out=lost: _other_leads(r, out), TAKEOVER_MOST_S)  # type: ignore[misc]
                regions.first_change(lost)
                took.append((regions.world.now - began) * 1_000)
                again += regions.epoch() > epoch + 1
                regions.world.run_for(12.0)
                fenced += regions.fenced_outside(lost)
            cells = (
                f"{statistics.median(took):.0f} | {max(took):.0f} | {again} of {seeds} | {fenced}"
            )
            print(f"| {loss.name} | {region} | {cells} |", flush=True)


def _other_leads(regions: Regions, lost: str) -> bool:
    running = regions.cluster.running()
    return any(
        controller.active and n != 1 and regions.region_of[n] != lost
        for n, controller in running.items()
    )


def peace(seconds: float, seeds: int) -> None:
    """Print whether unsteady paths cause elections that nobody needs."""
    print("\n| jitter, lost | leader in | elections | fenced | change | simulated s |")
    print("|---|---|--:|--:|--:|--:|")
    for name, weather in UNSTEADY:
        for region in ("A", "C"):
            elections = fenced = 0
            changes: list[float] = []
            simulated_s = 0.0
            for seed in range(1, seeds + 1):
                regions = _begin(seed, region, weather)
                epoch, began = regions.epoch(), regions.world.now
                regions.load(region, seconds, 1.0)
                elections += regions.epoch() - epoch
                fenced += regions.fenced()
                changes += regions.clients[region].changes_ms
                simulated_s += regions.world.now - began
            cells = f"{elections} | {fenced} | {_of(changes)} | {simulated_s:.0f}"
            print(f"| {name} | {region} | {cells} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.regions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="trials of each loss")
    parser.add_argument("--seconds", type=float, default=30.0, help="of peace, for each of 2 seeds")
    given = parser.parse_args()
    trips = ", ".join(f"{pair} {ms}" for pair, ms in ROUND_TRIP_MS.items())
    print(f"Controllers {CONTROLLERS}; round trips in ms: {trips}, inside {INSIDE_MS}.")
    print("Times are in ms, p50; p99.")
    latencies()
    takeovers(given.seeds)
    peace(given.seconds, 2)


if __name__ == "__main__":
    main()
