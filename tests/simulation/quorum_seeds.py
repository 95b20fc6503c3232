"""Seeds of the quorum: one seed is one run, drawn whole from its number.

    python -m tests.simulation.quorum_seeds --first 1 --count 100 [--nodes 3|5] [--kind NAME]

A seed that fails prints one line that runs it again, and what led to it.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from runtime.simulated.disk_faults import DiskProfile
from runtime.simulated.fault_schedules import (
    ALL_BUT_DAMAGE,
    CLOCKS,
    CUTS,
    DAMAGE,
    EVERYTHING,
    NOISE,
    PAUSES,
    TRIGGERED,
    FaultSchedule,
)
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.world import SimulationFailedError
from tests.simulation import drawn, forged, voters
from tests.simulation.aftermath import restart_victims
from tests.simulation.coverage import QUORUM_OPERATIONS, of_quorum, pairs
from tests.simulation.quorum_cluster import QuorumCluster, Shape

COMMAND = "python -m tests.simulation.quorum_seeds"
ELECTION_S = 0.5
CALM_S = 20.0

POWER = FaultSchedule(
    {"power": 6.0, "kill_at_step": 2.0, "kill_leader": 1.0, "isolate_leader": 2.0, "whole": 2.0},
    gap_s=(0.05, 0.9),
    length_s=(0.02, 1.0),
)
WIRE = FaultSchedule(
    {**NOISE, "wild": 6.0, "reset": 3.0, "isolate_leader": 2.0, "kill_leader": 1.0, **PAUSES},
    gap_s=(0.05, 0.8),
    length_s=(0.1, 3.0),
)
LAG = FaultSchedule(
    {**CUTS, "isolate_leader": 3.0, "kill": 3.0, "power": 2.0, "wild": 2.0, "slow_disk": 1.0},
    gap_s=(0.2, 1.0),
    length_s=(0.5, 6.0),
)
SLOW = FaultSchedule(
    {"slow_disk": 6.0, "stuck_disk": 1.0, "wild": 4.0, "power": 4.0, **CLOCKS},
    gap_s=(0.05, 0.6),
    length_s=(0.1, 3.0),
)
STALE = FaultSchedule(
    {"clock_rate": 8.0, "isolate_leader": 8.0, "one_way": 2.0, "pause_leader": 1.0},
    gap_s=(0.05, 0.8),
    length_s=(0.3, 3.0),
    rates=(0.3, 3.0),
)
FULL = FaultSchedule(
    {"full_disk": 6.0, "power": 3.0, "kill_leader": 2.0, "slow_disk": 1.0, "reset": 1.0},
    gap_s=(0.1, 1.0),
    length_s=(0.1, 3.0),
)
UNEVEN = (DiskProfile(100, 1_000), DiskProfile(2_000, 20_000), DiskProfile(10_000, 120_000))
KINDS: dict[str, FaultSchedule] = {
    "everything": EVERYTHING,
    "power": POWER,
    "wire": WIRE,
    "lag": LAG,
    "slow": SLOW,
    "stale": STALE,
    "full": FULL,
}
MORE_KINDS: dict[str, dict[str, float]] = {
    "drawn": ALL_BUT_DAMAGE,
    "damage": {**DAMAGE, **ALL_BUT_DAMAGE},
    "hunt": {},
    "forged": {},
    "voters": {},
    "addresses": {},
}
"""Asked for by name: the seed draws shape and faults, out of these.

A seed's kind by its number never changes, so that a seed that found something stays one.
"""
VOTERS_CHANGE = ("voters", "addresses")
NODES = {"drawn": (1, 3, 3, 3, 3, 5), "damage": (3, 3, 3, 5), "hunt": (3, 3, 3, 5)}
PAIRS = pairs(sorted({*DAMAGE, *ALL_BUT_DAMAGE} - {*TRIGGERED}), QUORUM_OPERATIONS)
"""What the seeds of the kind `hunt` share among themselves."""


@dataclass
class Outcome:
    """What a run came to."""

    seed: int
    nodes: int
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
    asked_nodes: int | None = None
    """How many nodes were asked for; None: the seed drew them."""

    @property
    def rerun(self) -> str:
        """The command that runs this seed again, event by event.

        It names the number of nodes only if that was asked for: a seed that may choose its nodes
        draws everything after them differently from one that may not.
        """
        nodes = "" if self.asked_nodes is None else f"--nodes {self.asked_nodes} "
        return f"{COMMAND} --first {self.seed} --count 1 {nodes}--kind {self.kind}"


def shape_of(seed: int, nodes: int | None, kind: str | None) -> tuple[Shape, str, FaultSchedule]:
    """Draw what a seed is about; what is given is not drawn."""
    names = list(KINDS)
    chosen = kind or names[seed % len(names)]
    if chosen == "forged":
        return forged.draw_shape(seed, nodes), chosen, forged.BESIDE
    count = nodes or (5 if seed // len(names) % 4 == 3 else 3)
    shape = Shape(nodes=count, faults_s=12.0)
    if chosen in VOTERS_CHANGE:
        return shape, chosen, voters.draw(seed, shape, chosen)
    if chosen in MORE_KINDS:
        dice = drawn.dice_of(seed, chosen)
        drawn.draw_quorum(dice, shape, (nodes,) if nodes else NODES[chosen])
        if chosen != "hunt":
            return shape, chosen, drawn.draw_faults(dice, MORE_KINDS[chosen])
        shape.tail_bytes, shape.compact_every, shape.window_bytes = 1_500, 10, 6_000
        return shape, chosen, drawn.draw_targets(dice, shape, drawn.pairs_of(seed, PAIRS))
    if chosen == "power":
        shape.disks = UNEVEN
    if chosen == "stale":
        shape.reads_per_s = 200.0
    if chosen == "lag":
        shape.tail_bytes = 4_000
        shape.compact_every = 20
        shape.window_bytes = 6_000
    return shape, chosen, KINDS[chosen]


def run_seed(seed: int, nodes: int | None = None, kind: str | None = None) -> Outcome:
    """Run one seed: torment, heal, and see that the cluster recovers."""
    shape, chosen, fault_schedule = shape_of(seed, nodes, kind)
    cluster = QuorumCluster(seed, shape)
    fault_atlas = cluster.expect_damage() if chosen in ("damage", "hunt") else None
    targeted = drawn.pairs_of(seed, PAIRS) if chosen == "hunt" else ()
    nemesis = Nemesis(
        cluster,
        fault_schedule,
        partial(of_quorum, cluster),
        fault_atlas,
        QUORUM_OPERATIONS,
        targeted,
    )
    if fault_atlas is not None:
        fault_atlas.victims = nemesis.victims
    outcome = Outcome(seed, shape.nodes, chosen, asked_nodes=nodes)
    forgery = forged.Forgery(cluster, seed) if chosen == "forged" else None
    changes = None
    if chosen in VOTERS_CHANGE:
        changes = voters.VoterAdministrator(cluster, seed, moves=chosen == "addresses")
    try:
        if forgery is not None:
            forged.run(cluster, nemesis, forgery)
        else:
            if changes is not None:
                cluster.world.schedule(0, changes.start, None, "administrator")
            _run(cluster, nemesis, shape)
    except SimulationFailedError as error:
        outcome.failure = str(error)
    outcome.history = nemesis.history
    outcome.faults, outcome.coverage = nemesis.counts, nemesis.met
    outcome.simulated_s = cluster.world.now
    counts = cluster.proposers.counts
    outcome.facts = Counter(
        acknowledged=counts.acknowledged,
        proposed=counts.proposed,
        reads=counts.reads,
        leaderships=cluster.leaderships,
        installs=cluster.installs,
        jumps=cluster.jumps,
        events=cluster.world.executed,
        incarnations=sum(host.incarnations for host in cluster.hosts.values()),
    )
    if fault_atlas is not None:
        outcome.facts += fault_atlas.facts
    if changes is not None:
        outcome.facts += changes.facts
    if forgery is not None:
        outcome.facts["frames forged"] = sum(forgery.forger.said.values())
    outcome.digest = cluster.world.digest()
    return outcome


def _run(cluster: QuorumCluster, nemesis: Nemesis, shape: Shape) -> None:
    world = cluster.world
    cluster.start_all()
    cluster.proposers.start()
    nemesis.start()
    world.run_for(shape.faults_s)
    nemesis.heal()
    for node_id, owner in list(cluster.owners.items()):
        if owner.stopped and cluster.hosts[node_id].running:
            world.fail(f"a node stopped itself: {owner.stopped}", node_id)
    _recovers(cluster)


def _recovers(cluster: QuorumCluster) -> None:
    """I12: a leader within five election timeouts of the healing, everybody caught up soon."""
    world = cluster.world
    # What the network still carries from before may come as late as its profile said, and
    # a disk that was stuck or slow works off its queue first.
    world.run_for(3.0)
    if not world.run_for(5 * ELECTION_S, lambda: cluster.serving() is not None):
        world.fail("I12: no leader five election timeouts after the faults ended", None)
    before = cluster.proposers.counts.acknowledged
    world.run_for(1.0)
    if not world.run_for(CALM_S, lambda: cluster.proposers.counts.acknowledged > before):
        world.fail("I12: nothing is acknowledged after the faults ended", None)
    cluster.busy = False
    if not world.run_for(CALM_S, cluster.caught_up):
        ends = {node_id: owner.last_delivered for node_id, owner in cluster.running()}
        world.fail(f"I12: not everybody caught up: {ends}", None)
    if cluster.fault_atlas is not None:
        restart_victims(cluster)
        if not world.run_for(CALM_S, cluster.caught_up):
            world.fail("I12: not everybody caught up after a last start", None)
        cluster.fault_atlas.judge_folders()


def run_many(
    first: int, count: int, nodes: int | None = None, kind: str | None = None
) -> Iterator[Outcome]:
    """Run seeds one after another."""
    for seed in range(first, first + count):
        yield run_seed(seed, nodes, kind)


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Run seeds of the simulated quorum.")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--nodes", type=int, choices=(1, 3, 5), default=None)
    parser.add_argument("--kind", choices=[*KINDS, *MORE_KINDS], default=None)
    parser.add_argument("--brief", action="store_true", help="one line a failure")
    return parser


def main() -> int:
    given = arguments().parse_args()
    began = time.monotonic()
    total: Counter[str] = Counter()
    failed = 0
    for outcome in run_many(given.first, given.count, given.nodes, given.kind):
        total += outcome.facts
        if outcome.failure:
            failed += 1
            head, _, trace = outcome.failure.partition("\n")
            say(f"FAILED {head}\n  again: {outcome.rerun}")
            if not given.brief:
                say("\n".join(outcome.history) + "\n" + trace)
    took = time.monotonic() - began
    facts = ", ".join(f"{name} {value:,}" for name, value in total.items())
    say(f"{given.count} seeds, {failed} failed, {took / given.count:.2f} s a seed; {facts}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
