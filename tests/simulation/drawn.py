"""Draws the cluster, the faults and their intensity of a seed of kind `drawn`, `damage` or `hunt`.

Rule: everything follows from the seed and the kind's name. The duration of the faults is drawn
log-uniformly, so that most seeds are cheap and some run for long.
"""

import random as random_module
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from runtime.simulated.disk_faults import FAST, DiskProfile
from runtime.simulated.fault_schedules import FaultSchedule, draw_fault_schedule, log_uniform
from runtime.simulated.targeted_faults import Pair

FAULTS_S = (2.0, 20.0)
DISK_PROFILES = (
    FAST,
    DiskProfile(50, 200),
    DiskProfile(2_000, 20_000),
    DiskProfile(10_000, 120_000),
)


def dice_of(seed: int, kind: str) -> Random:
    """Return the random source that draws a run before its world exists."""
    return random_module.Random(f"{kind}/{seed}")


def draw_disks(dice: Random) -> tuple[DiskProfile, ...]:
    """Draw what disks there are; each node draws one of them."""
    return tuple(dice.sample(DISK_PROFILES, dice.choice((1, 1, 2, 4))))


def draw_faults(dice: Random, kinds: Mapping[str, float]) -> FaultSchedule:
    """Draw the fault schedule; at least one of the kinds is in it."""
    return draw_fault_schedule(dice, kinds)


def draw_cluster(dice: Random, shape: Any, controllers: tuple[int, ...]) -> None:
    """Draw a cluster of controllers and brokers."""
    shape.controllers = dice.choice(controllers)
    shape.brokers = dice.choice((1, 2, 3, 3, 4))
    shape.faults_s = log_uniform(dice, *FAULTS_S)
    shape.session_s = dice.choice((1.5, 3.0, 3.0, 5.0))
    shape.changes_per_s = log_uniform(dice, 2.0, 15.0)
    shape.reads_per_s = log_uniform(dice, 1.0, 12.0)
    shape.rivals = dice.choice((0, 0, 0, 2))
    shape.checkpoint_bytes = int(log_uniform(dice, 4_000, 40_000))
    shape.tail_bytes = int(log_uniform(dice, 800, 16_000))
    shape.segment_bytes = int(log_uniform(dice, 3_000, 32_000))
    shape.broker_fault_schedule = log_uniform(dice, 0.05, 1.0)
    shape.disks = draw_disks(dice)
    if dice.random() < 0.4:
        shape.batch_bytes, shape.large_topics = 400, dice.choice((1, 2, 6))


def draw_quorum(dice: Random, shape: Any, nodes: tuple[int, ...]) -> None:
    """Draw a quorum and its load."""
    shape.nodes = dice.choice(nodes)
    shape.faults_s = log_uniform(dice, *FAULTS_S)
    shape.proposals_per_s = log_uniform(dice, 5.0, 50.0)
    shape.reads_per_s = log_uniform(dice, 2.0, 40.0)
    shape.tail_bytes = int(log_uniform(dice, 1_000, 40_000))
    shape.compact_every = int(log_uniform(dice, 8, 120))
    shape.segment_bytes = int(log_uniform(dice, 4_000, 64_000))
    shape.window_bytes = int(log_uniform(dice, 4_000, 64_000))
    shape.payload_bytes = (8, int(log_uniform(dice, 20, 1_500)))
    shape.disks = draw_disks(dice)


PAIRS_PER_RUN = 4
STIR = {"kill": 1.0, "isolate_leader": 1.0, "power": 0.5}
"""What goes on besides, in every hunt."""
_LAG = {"kill": 6.0, "wiped_disk": 4.0, "isolate_leader": 2.0}
STIR_FOR = {
    "transfer": {"stuck_disk": 8.0, "full_disk": 4.0},
    "jump": _LAG,
    "pull": _LAG,
    "backfill": {**_LAG, "lost_file": 2.0},
    "mending": {"rot": 4.0, "rot_at_rest": 6.0, "cut_file": 2.0},
}
"""What makes that a rare operation is needed: somebody lags, lacks something, or leads badly."""


def pairs_of(seed: int, every: Sequence[Pair]) -> list[Pair]:
    """Return what a run hunts; all pairs have had their turn after a fourth as many seeds.

    What happens at the first start only comes first.
    """
    apart = -(-len(every) // PAIRS_PER_RUN)
    chosen = [every[(seed + turn * apart) % len(every)] for turn in range(PAIRS_PER_RUN)]
    return sorted(chosen, key=lambda pair: pair[1] != "forming")


def pair_beside(seed: int, faults: Sequence[str], operation: str) -> Pair:
    """Return what a run hunts beside its pairs, where it runs an operation that it has drawn.

    The seed's number gives the fault, so every fault has its turn.
    """
    return faults[seed % len(faults)], operation


def draw_targets(dice: Random, shape: Any, pairs: Sequence[Pair]) -> FaultSchedule:
    """Draw how much else happens during a hunt, and how long the faults last."""
    weights = dict(STIR)
    for _, operation in pairs:
        weights |= STIR_FOR.get(operation, {})
    if len(weights) > len(STIR):
        shape.faults_s = dice.uniform(12.0, 20.0)
    shortest = log_uniform(dice, 0.2, 1.5)
    length = log_uniform(dice, 0.05, 0.5)
    if any(operation == "transfer" for _, operation in pairs):
        length = dice.uniform(0.6, 1.2)  # a disk counts as stuck after two election timeouts
    slowest = dice.choice((0.8, 0.5))
    return FaultSchedule(
        {**weights, "old_frames": 0.0},
        gap_s=(shortest, 3 * shortest),
        length_s=(length, length * dice.uniform(4.0, 12.0)),
        rates=(slowest, 1 / slowest),
    )
