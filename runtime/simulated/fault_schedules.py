"""Fault schedules: which faults, how often and how long; named, or chosen by the seed.

Rule: never reorder or extend a table, because the seed chooses by position. Put a new fault into a
table of its own. Then a seed that once found a defect still gives the same run.
"""

import math
from collections.abc import Mapping
from random import Random
from typing import NamedTuple


class FaultSchedule(NamedTuple):
    """Which faults, how often and how long."""

    weights: Mapping[str, float]
    """By kind of fault (see the tables below). The order matters, since the seed chooses by it."""
    gap_s: tuple[float, float] = (0.05, 1.5)
    """The least and the most seconds between the beginnings of two faults."""
    length_s: tuple[float, float] = (0.1, 4.0)
    """The least and the most seconds of one fault. Short ones are more frequent."""
    rates: tuple[float, float] = (0.5, 2.0)
    """The lowest and the highest rate of a skewed monotonic clock."""
    first_s: tuple[float, float] | None = None
    """When the first fault begins, in seconds; None: after a gap."""


CRASHES = {"kill": 3.0, "kill_leader": 2.0, "kill_at_step": 3.0, "power": 3.0}
PAUSES = {"pause": 1.0, "pause_leader": 2.0}
CUTS = {
    "whole": 2.0,
    "one_way": 2.0,
    "bridge": 1.0,
    "isolate_leader": 2.0,
    "flapping": 1.0,
    "reset": 2.0,
}
DISKS = {"slow_disk": 2.0, "stuck_disk": 1.0}
CLOCKS = {"clock_rate": 1.0, "wall_jump": 1.0}
NOISE = {"lossy": 1.0, "slow_paths": 1.0, "wild": 2.0}
ROOM = {"full_disk": 2.0, "full_disks": 1.0, "read_only_disk": 1.0, "disk_error": 2.0}
"""Disks that refuse to write. The node may stop itself: that is its rule."""
LATE = {"hold": 1.0, "old_frames": 2.0, "stranded_leader": 1.0}
"""Frames that arrive very late, and a leader that was paused meanwhile."""
STARTS = {"kill_at_start": 1.5}
"""A process is killed again at one of the first changes of its disk."""
TRIGGERED = {"ambush": 4.0}
"""A fault of the tables above that waits until a node has a certain operation under way."""
ROT = {"rot": 3.0, "rot_at_rest": 3.0, "misdirected_write": 2.0, "read_error": 0.5}
LOST = {"lost_file": 2.0, "cut_file": 2.0, "old_file": 1.0}
FOLDERS = {"wiped_disk": 0.7, "old_folder": 1.0, "swapped_folders": 1.0}
DAMAGE = {**ROT, **LOST, **FOLDERS}
"""What must hold after damage depends on the bytes and nodes that it hits: `damage_faults`."""

EVERYTHING = FaultSchedule({**CRASHES, **PAUSES, **CUTS, **DISKS, **CLOCKS, **NOISE})
"""All faults of these tables. A full disk is not among them."""
WITH_FULL_DISKS = FaultSchedule({**EVERYTHING.weights, "full_disk": 2.0})
WITHIN_PROMISE = FaultSchedule({k: w for k, w in EVERYTHING.weights.items() if k != "wild"})
"""Only what the promise of `runtime.links.interface` allows."""
ALL_BUT_DAMAGE = {**EVERYTHING.weights, **ROOM, **LATE, **STARTS, **TRIGGERED}


def log_uniform(dice: Random, low: float, high: float) -> float:
    """Draw a number between two bounds; its logarithm is evenly distributed."""
    return low * math.pow(high / low, dice.random())


def draw_fault_schedule(dice: Random, kinds: Mapping[str, float]) -> FaultSchedule:
    """Draw a subset of the kinds, their weights, and how often and how long faults happen.

    Many subsets are small, because a few kinds at once find more defects than all of them. For
    example, a process that is killed every second never has a long queue.
    """
    names = sorted(kinds)
    count = min(len(names), dice.choice((1, 2, 3, 4, 6, 10, 15, len(names))))
    chosen = sorted(dice.sample(names, count))
    for ambush in TRIGGERED:
        if ambush not in chosen and dice.random() < 0.5:
            chosen.append(ambush)
    weights = {name: round(kinds[name] * log_uniform(dice, 0.3, 3.0), 3) for name in chosen}
    shortest = log_uniform(dice, 0.03, 0.5)
    length = log_uniform(dice, 0.02, 0.5)
    slowest = dice.choice((0.8, 0.5, 0.3))
    return FaultSchedule(
        weights,
        gap_s=(shortest, shortest * dice.uniform(2.0, 10.0)),
        length_s=(length, length * dice.uniform(3.0, 20.0)),
        rates=(slowest, 1 / slowest),
        first_s=(0.0, 0.3) if dice.random() < 0.3 else None,
    )
