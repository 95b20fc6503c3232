"""Seeds of the kind `forged`: a peer sends forged frames for a while, then it is silent.

Rule: once the forger is silent, a leader is elected within `ELECTED_S` and writes are served, also
after every process was restarted. A forger without a pinned directory breaks no invariant, loses
nothing that was acknowledged, and raises no term: the terms are those of the elections that were
held. A forger that is a voter can raise terms only as far as the ceiling allows.
"""

import random as random_module
from collections.abc import Callable
from random import Random

from quorum.guard.ceiling import CLIMB_ALONE
from quorum.terms import LEAP_MAX, TERM_MAX
from runtime.simulated.fault_schedules import FaultSchedule, log_uniform
from runtime.simulated.nemesis import Nemesis
from runtime.simulated.world import US
from tests.simulation.forger import Forger
from tests.simulation.quorum_cluster import QuorumCluster, Shape

ELECTED_S = 5.0
SERVED_S = 5.0
BESIDE = FaultSchedule(
    {"kill": 1.0, "kill_leader": 2.0, "power": 1.0, "reset": 2.0, "isolate_leader": 1.0},
    gap_s=(0.2, 2.0),
    length_s=(0.05, 1.0),
)
"""What goes on beside the forger."""
TERMS_OF_ELECTIONS = 2_000
"""More than all elections of a run can raise a term."""


def is_voter(seed: int) -> bool:
    """Return whether a seed's forger has a pinned directory: every other seed's has."""
    return seed % 2 == 1


def draw_shape(seed: int, nodes: int | None) -> Shape:
    """Draw a quorum and its load."""
    dice = random_module.Random(f"forged/{seed}")
    shape = Shape(nodes=nodes or dice.choice((3, 3, 3, 5)))
    shape.faults_s = log_uniform(dice, 3.0, 10.0)
    shape.proposals_per_s = log_uniform(dice, 5.0, 50.0)
    shape.tail_bytes = int(log_uniform(dice, 1_000, 40_000))
    shape.compact_every = int(log_uniform(dice, 8, 120))
    return shape


class Forgery:
    """The forger's times in one run."""

    def __init__(self, cluster: QuorumCluster, seed: int) -> None:
        self.cluster = cluster
        self.dice: Random = cluster.world.random("forger")
        self.goes_on = True
        node_id = self.dice.choice(list(cluster.hosts))
        self.forger = Forger(cluster, node_id, self.dice, pinned=is_voter(seed))
        if self.forger.pinned:
            cluster.invariants.liars.add(node_id)

    def start(self) -> None:
        """Plan its first time."""
        self._in(self.dice.uniform(0.3, 1.5), self._begin)

    def _in(self, seconds: float, act: Callable[[], None]) -> None:
        self.cluster.world.schedule(int(seconds * US), act, None, "forger")

    def _begin(self) -> None:
        if not self.goes_on:
            return
        owner = self.cluster.owners[self.forger.node_id]
        if hasattr(owner.quorum, "context") and owner.quorum.context.journal.formation:
            self.forger.begin()
        self._in(self.dice.uniform(0.5, 3.0), self._end)

    def _end(self) -> None:
        if not self.goes_on:
            return
        self.forger.end()
        if not self.cluster.hosts[self.forger.node_id].running:
            self.cluster.start(self.forger.node_id)
        self._in(self.dice.uniform(0.1, 1.5), self._begin)

    def silence(self) -> None:
        """End it for good; its node stays down."""
        self.goes_on = False
        self.cluster.hosts[self.forger.node_id].kill()


def run(cluster: QuorumCluster, nemesis: Nemesis, forgery: Forgery) -> None:
    """Run one seed."""
    world = cluster.world
    cluster.start_all()
    cluster.proposers.start()
    nemesis.start()
    forgery.start()
    world.run_for(cluster.shape.faults_s)
    nemesis.heal()
    forgery.silence()
    _serves(cluster, "once the forger is silent, its node being down")
    for node_id, owner in cluster.owners.items():
        if owner.stopped and cluster.hosts[node_id].running:
            world.fail(f"a node stopped itself: {owner.stopped}", node_id)
    for host in cluster.hosts.values():
        host.lose_power()
    cluster.start_all()
    _serves(cluster, "after all were restarted")
    cluster.busy = False
    if not world.run_for(20.0, cluster.caught_up):
        ends = {node_id: owner.last_delivered for node_id, owner in cluster.running()}
        world.fail(f"not everybody caught up: {ends}", None)
    _judge_terms(cluster, forgery)


def _serves(cluster: QuorumCluster, when: str) -> None:
    world = cluster.world
    if not world.run_for(ELECTED_S, lambda: cluster.serving() is not None):
        terms = {node_id: owner.quorum.context.term for node_id, owner in cluster.running()}
        world.fail(f"no leader within {ELECTED_S} s, {when}; terms {terms}", None)
    before = cluster.proposers.counts.acknowledged
    if not world.run_for(SERVED_S, lambda: cluster.proposers.counts.acknowledged > before):
        world.fail(f"nothing is acknowledged, {when}", None)


def _judge_terms(cluster: QuorumCluster, forgery: Forgery) -> None:
    """What a forger could do to the terms."""
    incarnations = sum(host.incarnations for host in cluster.hosts.values())
    most = TERMS_OF_ELECTIONS
    if forgery.forger.pinned:
        most += incarnations * LEAP_MAX + int(2 * cluster.world.now + 1) * CLIMB_ALONE
    for node_id, owner in cluster.running():
        if owner.quorum.context.term > min(most, TERM_MAX):
            cluster.world.fail(f"the term is {owner.quorum.context.term}, above {most}", node_id)
