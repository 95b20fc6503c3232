"""The scenarios in which every change of the node's files is a point.

Rule: a scenario is the same run each time: one seed, and only the faults that it names. It must
cover all ways in which its node writes. `MUST_SEE` lists the events that it must reach, so a
scenario that no longer reaches one fails.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import controller.leader.large_changes
from tests.crashpoints.stage import Stage
from tests.crashpoints.steps import Steps
from tests.simulation.cluster_shape import Shape
from tests.simulation.patches import patched

SEEDS = range(4, 40)
SMALL_BATCH = 60
"""Bytes: a topic's records don't fit, so that each creation is a transaction of several batches."""


class Scenario(NamedTuple):
    """A scenario, and whose files are real in it."""

    tell: Callable[[Stage], None]
    leads: bool
    must_see: tuple[str, ...]


def stage_for(name: str, steps: Steps) -> Stage:
    """Set the stage: with a node that will be the first leader, or one that won't."""
    seed, node_id = _cast(leads=SCENARIOS[name].leads)
    return _stage(seed, node_id, steps)


@cache
def _cast(*, leads: bool) -> tuple[int, int]:
    """Find a seed, and a node that leads first under it, or doesn't."""
    for seed, node_id in product(SEEDS, (1, 2, 3)):
        with tempfile.TemporaryDirectory(prefix="crashpoints-") as folder:
            steps = Steps(Path(folder) / "node", lambda step: None)
            stage = _stage(seed, node_id, steps)
            steps.install()
            try:
                stage.begin()
            finally:
                steps.remove()
                steps.close_left_open()
        if (stage.cluster.leader() == node_id) == leads:
            return seed, node_id
    raise AssertionError("no seed fits the story")


def _stage(seed: int, node_id: int, steps: Steps) -> Stage:
    shape = Shape(
        brokers=1,
        changes_per_s=8.0,
        reads_per_s=2.0,
        checkpoint_bytes=6_000,
        tail_bytes=1_500,
        segment_bytes=4_000,
    )
    return Stage(seed, node_id, steps, shape)


def transactions(stage: Stage) -> None:
    """Let every change be one."""
    with patched([(controller.leader.large_changes, "BATCH_TARGET_BYTES", SMALL_BATCH)]):
        stage.pass_time(1.5)


def lead(stage: Stage) -> None:
    """The node forms the quorum, leads, cuts its journal, rolls, thins out, leaves and returns."""
    stage.begin()
    stage.pass_time(2.0)
    transactions(stage)
    stage.cluster.broker_hosts[1].kill()
    stage.pass_time(4.0)
    stage.cluster.start_broker(1)
    stage.pass_time(2.0)
    stage.stop(stage.node_id)
    stage.pass_time(0.5)
    stage.start(stage.node_id)
    stage.until(stage.caught_up, "it caught up")
    stage.pass_time(2.0)


def follow(stage: Stage) -> None:
    """The node follows, is killed and catches up by entries; its leader is killed; it goes on."""
    stage.begin()
    stage.pass_time(3.0)
    transactions(stage)
    stage.host.kill()
    stage.pass_time(0.4)
    stage.start(stage.node_id)
    stage.until(stage.caught_up, "it caught up")
    stage.pass_time(3.0)
    leader = stage.cluster.leader()
    stage.cluster.hosts[leader].kill()
    stage.pass_time(3.0)


def catch_up(stage: Stage) -> None:
    """The node is left behind twice: it catches up by the others' ledger, then by a checkpoint."""
    stage.begin()
    stage.pass_time(6.0)
    stage.host.kill()
    stage.pass_time(4.0)
    stage.start(stage.node_id)
    stage.until(stage.caught_up, "it caught up")
    stage.pass_time(1.0)
    stage.host.kill()
    # From now on as much is deleted as is created: a checkpoint is smaller than the log.
    stage.cluster.shape.topics_max = 4
    stage.pass_time(16.0)
    stage.start(stage.node_id)
    stage.until(stage.whole, "it has its history back")
    stage.pass_time(0.5)


SCENARIOS = {
    "leader": Scenario(
        lead, leads=True, must_see=("checkpoint_removed", "journal_compacted", "broker_fenced")
    ),
    "follower": Scenario(follow, leads=False, must_see=("checkpoint_removed", "journal_compacted")),
    "jumper": Scenario(catch_up, leads=False, must_see=("history_backfilled", "jump_done")),
}
