"""Seeds of the whole cluster: one seed is one run, drawn whole from its number.

    python -m tests.simulation.seeds --first 1 --count 100 [--kind NAME] [--operations NAMES]
        [--trace] [--history FILE]

First there are faults, then none: the cluster must come to rest, and all logs must hold one
history. For a seed that fails it prints one line that runs the seed again.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from broker_agent import catching_up, standby_choice
from controller.http import held_requests, metadata_fetch, registration_queue
from controller.leader import batch_writer, heartbeats, large_changes, proposer
from controller.managers import deletions, leader_elections, rounds, sweep
from controller.replica import contact_sender
from metadata import key_runs, replay_steps
from runtime.loop import slices
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.fault_schedules import ALL_BUT_DAMAGE, DAMAGE, TRIGGERED, FaultSchedule
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.targeted_faults import Pair
from runtime.simulated.world import SimulationFailedError
from tests.simulation import drawn, drawn_operations
from tests.simulation.aftermath import (
    have_ledgers_mended,
    put_bad_checkpoints_aside,
    restart_victims,
)
from tests.simulation.archiving import ArchivedRun
from tests.simulation.broker_faults import BROKER_ACTS
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape
from tests.simulation.coverage import (
    CHANGE_OF_CLIENTS,
    CLUSTER_OPERATIONS,
    REASSIGNMENT,
    of_cluster,
    pairs,
)
from tests.simulation.crowds import count_crowd
from tests.simulation.fault_kinds import KINDS, MORE_KINDS
from tests.simulation.history_export import export
from tests.simulation.past import judge_past
from tests.simulation.patches import Patch, patched
from tests.simulation.releases import old_release

FAULTS_S = 20.0
REST_S = 60.0

FAULTS: dict[str, dict[str, float]] = {
    "drawn": ALL_BUT_DAMAGE,
    "damage": {**DAMAGE, **ALL_BUT_DAMAGE},
}
"""What the kinds that are drawn draw from."""
CONTROLLERS = {"drawn": (1, 3, 3, 3, 3, 5), "damage": (3, 3, 3, 5), "hunt": (3, 3, 3, 5)}
RAISING = ("clients", "replicas", "moves")
"""Kinds whose clients raise feature levels. A third of their seeds begins at the lowest ones."""
HUNTED = [
    *sorted({*DAMAGE, *ALL_BUT_DAMAGE} - {*TRIGGERED}),
    *(f"broker {act}" for act in BROKER_ACTS),
]
"""The faults that seeds of the kind `hunt` wait with."""
PAIRS = pairs(HUNTED, CLUSTER_OPERATIONS)
"""What the seeds of the kind `hunt` share among themselves."""


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    kind: str
    failure: str = ""
    history: list[str] = field(default_factory=list)
    facts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """How often each kind has struck."""
    coverage: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind, what was under way where it struck."""
    simulated_s: float = 0.0
    digest: str = ""
    operations: tuple[str, ...] | None = None
    """What was asked for beside the kind's own operations; None: the seed drew them."""
    faults_s: float = FAULTS_S
    """How long the faults were asked to last."""

    @property
    def rerun(self) -> str:
        """The command that runs this seed again, event by event."""
        more = f" KIND={self.kind}" if self.kind in MORE_KINDS else ""
        if self.operations is not None:
            more += f" OPERATIONS={','.join(self.operations) or 'none'}"
        if self.faults_s != FAULTS_S:
            more += f" FAULTS_S={self.faults_s}"
        return f"make seed SEED={self.seed}{more}"


def shape_of(
    seed: int, kind: str, faults_s: float, operations: Sequence[str] | None = None
) -> tuple[Shape, FaultSchedule]:
    """Return what a seed of a kind is about. `operations`: see `run_seed`."""
    shape, fault_schedule = _shape_of(seed, kind, faults_s)
    drawn_operations.add(
        shape, drawn_operations.draw(seed, kind) if operations is None else operations
    )
    return shape, fault_schedule


def _shape_of(seed: int, kind: str, faults_s: float) -> tuple[Shape, FaultSchedule]:
    shape = Shape(controllers=5 if seed % 7 == 6 else 3, faults_s=faults_s)
    fault_schedule = {**KINDS, **MORE_KINDS}[kind]
    if kind == "lag":
        shape.tail_bytes, shape.checkpoint_bytes, shape.segment_bytes = 1_000, 6_000, 4_000
    if kind in ("rivals", "conditions"):
        shape.rivals, shape.conditional = 4, kind == "conditions"
    if kind == "twins":
        shape.duplicate_brokers, shape.broker_fault_schedule = True, 0.1
    shape.forgotten = kind == "forgets"
    if kind in ("moves", "forgets"):
        shape.moved = True
    if kind == "crowd":
        shape.crowd, shape.brokers = True, 10
        shape.broker_fault_schedule = 0.0 if seed % 2 else 2.0
    if kind == "combined":
        shape.combined, shape.replicated, shape.topics_max = True, True, 12
        shape.broker_fault_schedule = 0.1
    if kind in ("replicas", "moves", "forgets"):
        shape.replicated, shape.brokers, shape.topics_max = True, 4, 12
        shape.broker_fault_schedule = 0.6
    shape.erasing = kind == "erasures"
    shape.sealed_addresses = shape.erasing and seed % 2 == 1
    shape.pseudonyms = shape.erasing and seed % 3 == 0
    if shape.pseudonyms and seed % 2 == 0:
        # Agents open names one by one, and people ask in between.
        shape.slice_us = 200
    shape.clients = kind == "clients" or shape.erasing
    shape.session_clients = kind == "sessions"
    if kind == "imports":
        shape.importer, shape.batch_bytes = True, 400
    shape.low_levels = kind in RAISING and seed % 3 == 0
    shape.wrong_keys = kind == "clients" and seed % 3 == 1
    if kind == "configs":
        shape.configurers = True
        if seed % 2:
            shape.replicated, shape.brokers, shape.topics_max = True, 4, 12
    if kind == "standbys":
        shape.standbys, shape.brokers = True, 6
        shape.replicated, shape.duplicate_brokers = seed % 3 == 0, seed % 3 == 1
        shape.broker_fault_schedule = 0.2
    if kind == "kafka":
        shape.kafka, shape.batch_bytes, shape.large_topics = True, 400, 2
        shape.checkpoint_bytes, shape.segment_bytes = 6_000, 4_000
        shape.slice_us = 200 if seed % 2 else 0
    if kind == "voters":
        shape.controllers, shape.first_voters = 5, ((1,), (1, 2, 3))[seed % 2]
    if kind == "rights":
        shape.rights, shape.broker_fault_schedule = True, 0.1
        shape.batch_bytes, shape.slice_us = 400, 200 if seed % 2 else 0
    if kind == "archive":
        shape.archived, shape.broker_fault_schedule, shape.changes_per_s = True, 0.2, 12.0
        shape.tail_bytes, shape.checkpoint_bytes, shape.segment_bytes = 4_000, 6_000, 6_000
    shape.heads = kind == "heads"
    shape.old_release = kind == "releases"
    if fault_schedule is None:
        dice = drawn.dice_of(seed, kind)
        drawn.draw_cluster(dice, shape, CONTROLLERS[kind])
        if kind != "hunt":
            return shape, drawn.draw_faults(dice, FAULTS[kind])
        fault_schedule = drawn.draw_targets(dice, shape, drawn.pairs_of(seed, PAIRS))
        shape.batch_bytes, shape.large_topics = 400, dice.choice((1, 2))
        shape.tail_bytes, shape.checkpoint_bytes = 1_000, 6_000
        shape.scrub_s = 1.0
        shape.slice_us = int(drawn.log_uniform(dice, 1, 2_000))
        shape.mutations_per_s = dice.choice((0, 20, 60))
    return shape, fault_schedule


def _targets(seed: int, shape: Shape) -> list[Pair]:
    """Return the pairs of a hunt; drawn operations are hunted first."""
    # Reassignments begin later, once there are topics.
    beside = [CHANGE_OF_CLIENTS] * shape.clients + [REASSIGNMENT] * shape.moved
    return [
        *(drawn.pair_beside(seed, HUNTED, operation) for operation in beside),
        *drawn.pairs_of(seed, PAIRS),
    ]


def _constants(shape: Shape) -> Iterator[Patch]:
    """Yield what must be smaller than in production, so that it matters in a small world."""
    if shape.batch_bytes:
        yield large_changes, "BATCH_TARGET_BYTES", shape.batch_bytes
    if shape.moved:
        yield deletions, "ROUND_TOPICS", 1
        # Each round waits for the commit of the one before, so that leaders fail between two.
        yield proposer, "ROUNDS_IN_FLIGHT_BYTES_MAX", 1
        yield rounds, "ROUND", 2
        yield leader_elections, "ROUND", 2
        yield leader_elections, "LOOKS_MAX", 3
    if shape.crowd:
        yield registration_queue, "UNDER_WAY_MAX", 3
        yield metadata_fetch, "_DECIDING_MAX", 3
        yield held_requests, "CROWD", 5
        yield held_requests, "REST_S", 0.005
        yield heartbeats, "_FILLED_IN_A_STEP", 1
        yield slices, "SLICE_S", 0.0
        yield SimulatedClock, "SOON_US", 100
    if shape.standbys:
        yield standby_choice, "PAUSE_S", 0.5
        yield contact_sender, "BULK_MAX", 2
        yield contact_sender, "BULKS_MAX", 2
    if shape.slice_us:
        yield batch_writer, "_STEP", 2
        yield large_changes, "STEP", 2
        yield sweep, "ROUND", 2
        yield key_runs, "_RUN", 2
        yield replay_steps, "STEP", 2
        yield catching_up, "_SMALL_BYTES", -1
        yield proposer, "_SHARE_S", 0.0
        yield slices, "SLICE_S", 0.0
        yield SimulatedClock, "SOON_US", shape.slice_us
    if shape.old_release:
        yield from old_release()


def run_seed(
    seed: int,
    faults_s: float = FAULTS_S,
    kind: str = "",
    history: Path | None = None,
    on_cluster: Callable[[Cluster], None] = lambda _cluster: None,
    operations: Sequence[str] | None = None,
) -> Outcome:
    """Run one seed, of the kind that its number gives, or of the kind that is asked for.

    With `history`, write the answers of clients there. `on_cluster` gets the cluster at the end.
    `operations`: which administrators' operations run beside those of the kind; None: the seed
    draws them (`drawn_operations`).
    """
    kind = kind or list(KINDS)[seed % len(KINDS)]
    shape, fault_schedule = shape_of(seed, kind, faults_s, operations)
    cluster = Cluster(seed, shape)
    fault_atlas = cluster.expect_damage() if kind in ("damage", "hunt") else None
    nemesis = Nemesis(
        cluster,
        fault_schedule,
        partial(of_cluster, cluster),
        fault_atlas,
        CLUSTER_OPERATIONS,
        _targets(seed, shape) if kind == "hunt" else (),
        cluster.broker_faults.at_once(),
    )
    if fault_atlas is not None:
        fault_atlas.victims = nemesis.victims
    asked = None if operations is None else tuple(operations)
    outcome = Outcome(seed, kind, operations=asked, faults_s=faults_s)
    try:
        with patched(list(_constants(shape))):
            _run(cluster, nemesis, outcome, ArchivedRun(cluster) if shape.archived else None)
    except SimulationFailedError as error:
        outcome.failure = str(error)
    outcome.history = nemesis.history
    outcome.faults = nemesis.counts + cluster.broker_faults.counts
    outcome.coverage = {**nemesis.met, **cluster.broker_faults.met}
    outcome.simulated_s = cluster.world.now
    counts = cluster.admins.counts
    outcome.facts += Counter(
        acknowledged=counts.acknowledged,
        unknown=counts.unknown,
        refused=counts.refused,
        retries=counts.retries,
        reads=counts.reads,
        events=cluster.world.executed,
        controller_lives=sum(host.incarnations for host in cluster.hosts.values()),
        broker_lives=sum(host.incarnations for host in cluster.broker_hosts.values()),
        broker_epochs_served=len(cluster.invariants.served),
        wrong_keys=cluster.wrong_keys,
        levels_raised=cluster.levels_raised() if shape.low_levels else 0,
    )
    outcome.digest = cluster.world.digest()
    on_cluster(cluster)
    if history is not None:
        export(history, cluster, {"seed": seed, "kind": kind, "failure": outcome.failure})
    return outcome


def _run(
    cluster: Cluster, nemesis: Nemesis, outcome: Outcome, archived: ArchivedRun | None
) -> None:
    world = cluster.world
    cluster.start_all()
    nemesis.start()
    if archived is not None:
        archived.start()
    world.run_for(cluster.shape.faults_s)
    nemesis.heal()
    if archived is not None:
        archived.faults.end()
    cluster.healed = True
    if cluster.stopped:
        world.fail(f"a node stopped itself: {cluster.stopped}", None)
    cluster.broker_faults.heal()
    world.run_for(3.0)
    before = cluster.admins.counts.acknowledged
    if not world.run_for(REST_S, lambda: cluster.admins.counts.acknowledged > before):
        world.fail(f"I12: nothing is acknowledged after the faults: {cluster.unrest()}", None)
    cluster.busy = False
    if not world.run_for(REST_S, cluster.at_rest):
        world.fail(f"I12: no rest after the faults ended: {cluster.unrest()}", None)
    if cluster.fault_atlas is not None:
        restart_victims(cluster)
        have_ledgers_mended(cluster)
        if not world.run_for(REST_S, cluster.at_rest):
            world.fail(f"I12: no rest after damage was mended: {cluster.unrest()}", None)
        put_bad_checkpoints_aside(cluster)
        outcome.facts += cluster.fault_atlas.judge_folders()
    if archived is not None:
        outcome.facts += archived.judge()
    if cluster.shape.heads:
        outcome.facts += cluster.signed_heads.judge()
    outcome.facts += cluster.invariants.at_the_end()
    if cluster.shape.crowd:
        outcome.facts += count_crowd(cluster)
    if cluster.shape.standbys:
        senders = [each._http.sender for each in cluster.controllers.values()]
        outcome.facts["heartbeats confirmed to standbys"] += sum(s.confirmed for s in senders)
        outcome.facts["heartbeats that standbys gave up"] += sum(s.given_up for s in senders)
    if cluster.shape.configurers:
        outcome.facts += cluster.configurers.at_the_end()
    if cluster.shape.clients:
        outcome.facts += cluster.clients.at_the_end()
    if cluster.shape.erasing:
        outcome.facts += cluster.erased_values.at_the_end()
    if cluster.people_at_agents is not None:
        outcome.facts += cluster.people_at_agents.at_the_end()
    if cluster.shape.session_clients:
        outcome.facts += cluster.session_clients.counts
    if cluster.shape.importer:
        outcome.facts += cluster.importer.counts
    if cluster.shape.rights:
        outcome.facts += cluster.right_seekers.at_the_end()
    if cluster.kafka is not None:
        outcome.facts += cluster.kafka.at_the_end()
    outcome.facts += cluster.agent_requests.at_the_end()
    outcome.facts += cluster.joined
    if cluster.releases is not None:
        outcome.facts += cluster.releases.at_the_end()
    if cluster.combined is not None:
        outcome.facts += cluster.combined.counts
    if cluster.shape.clients:
        outcome.facts += judge_past(cluster)


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Run seeds of the simulated cluster.")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--kind", choices=[*KINDS, *MORE_KINDS], default="")
    parser.add_argument("--trace", action="store_true", help="what led to a failure")
    parser.add_argument("--history", type=Path, help="of the last seed, for a checker outside")
    parser.add_argument("--faults-s", type=float, default=FAULTS_S, help="how long faults last")
    parser.add_argument(
        "--operations",
        type=drawn_operations.parse,
        help="beside the kind's own: none, moves, clients, or both with a comma; default: drawn",
    )
    return parser


def run_many(given: argparse.Namespace) -> Iterator[Outcome]:
    """Run the seeds that a command line asks for, one after another."""
    for seed in range(given.first, given.first + given.count):
        yield run_seed(seed, given.faults_s, given.kind, given.history, operations=given.operations)


def main() -> int:
    given = arguments().parse_args()
    began = time.monotonic()
    total: Counter[str] = Counter()
    failed = 0
    for outcome in run_many(given):
        total += outcome.facts
        if outcome.failure:
            failed += 1
            head, _, trace = outcome.failure.partition("\n")
            print(f"FAILED {head}\n  again: {outcome.rerun}", flush=True)
            if given.trace:
                print("\n".join(outcome.history), trace, sep="\n", flush=True)
    took = time.monotonic() - began
    facts = ", ".join(f"{name} {value:,}" for name, value in total.items())
    print(f"{given.count} seeds, {failed} failed, {took / given.count:.2f} s a seed; {facts}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
