"""A majority is lost under load, and the cluster goes on from one survivor.

Each scenario ends with the invariants: one history, nothing applied twice, and nothing lost that
the survivor had. Old nodes come back afterwards: each side refuses the other, and says why.
"""

import os
from typing import Any

import pytest

from ledger.batch import Provenance
from logberg.recovery.choosing import Choice, choose
from logberg.recovery.recovering import RecoveryPlan, begin, plan_recovery
from logberg.recovery.survivors import Survivor, read_survivor
from runtime.randomness import seeded
from runtime.simulated.disk import SimulatedDisk
from tests.checkers.history import WRITES
from tests.simulation.carriers import _who
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

pytestmark = pytest.mark.simulation

SHAPE: dict[str, Any] = {"brokers": 2, "broker_fault_schedule": 0.0, "changes_per_s": 12.0}
SEEDS = range(int(os.environ.get("RECOVERY_SEEDS", "1")))
"""Each takes some seconds; `RECOVERY_SEEDS=20` runs more."""
Copies = dict[int, dict[str, bytes]]


def under_load(seed: int) -> Cluster:
    """A cluster that has served for a while, with checkpoints and cut journals."""
    made = Cluster(seed, Shape(**SHAPE))
    made.start_all()
    assert made.world.run_for(10, lambda: made.leader() is not None)
    made.world.run_for(4)
    return made


def survivor_of(made: Cluster) -> int:
    return next(n for n in made.hosts if n != made.leader())


def lose_all_but(made: Cluster, survivor: int, *, lags_s: float) -> Copies:
    """End all processes; the survivor was cut off for the last moments. Returns all folders."""
    if lags_s:
        others = [*made.broker_hosts.values(), *made.hosts.values()]
        made.network.cut([survivor], [h.node_id for h in others if h.node_id != survivor])
        made.world.run_for(lags_s)
    for host in (*made.hosts.values(), *made.broker_hosts.values()):
        host.lose_power()
    return {n: host.platter.snapshot() for n, host in made.hosts.items()}


def again(made: Cluster, seed: int, copies: Copies) -> Cluster:
    """Another cluster, yet to be started, on some of the folders; the others are empty."""
    new = Cluster(seed, Shape(**SHAPE))
    for node_id, files in copies.items():
        new.hosts[node_id].platter.restore(files)
    # Who caused the batches of the old log (I15), and what was asked for then (I7): of each change
    # nobody knows any more whether it is in the log.
    new.carriers._submitted |= made.carriers._submitted
    for asked in made.answers.operations:
        if asked.kind in WRITES:
            new.answers.asked(asked.kind, "before", topic=asked.topic, request_id=asked.request_id)
    return new


def start(new: Cluster) -> None:
    """Start everything; administrators draw names that the old log doesn't have."""
    new.start_all()
    new.admins.number = 10_000


def offline(cluster: Cluster, node_id: int) -> SimulatedDisk:
    """The folder of a node that doesn't run, as an operator's process sees it."""
    cluster.hosts[node_id].boot()
    disk = cluster.hosts[node_id].disk()
    disk.lock()
    return disk


def recover(cluster: Cluster, *node_ids: int, voters: tuple[int, ...] = ()) -> RecoveryPlan:
    """Recover from these nodes' folders; `voters` besides the chosen one get new folders."""
    disks = {n: offline(cluster, n) for n in node_ids}
    survivors = [read_survivor(f"controller-{n}", disk) for n, disk in disks.items()]
    choice = choose(survivors)
    chosen = choice.chosen.node_id
    plan = plan_recovery(
        choice,
        survivors,
        dict.fromkeys(voters or (chosen,)),
        now_ms=0,
        who=Provenance("User:olga", "offline", operation="RecoverQuorum", reason="lost two"),
        random=seeded(cluster.seed),
    )
    new: dict[int, SimulatedDisk] = {}
    for n in voters:
        if n != chosen:
            cluster.hosts[n].kill()
            cluster.hosts[n].platter.wipe()
            cluster.hosts[n].boot()
            new[n] = cluster.hosts[n].disk()
    begin(plan, new)
    for host in cluster.hosts.values():
        host.kill()
    header = plan.generation.first_batch.header
    cluster.carriers._submitted.add((header.epoch, "", *_who(header.provenance)))
    return plan


def looked_at(cluster: Cluster, node_id: int) -> tuple[Survivor, Choice]:
    """What the survivor holds; nothing is changed."""
    found = read_survivor(f"controller-{node_id}", offline(cluster, node_id))
    choice = choose([found])
    cluster.hosts[node_id].kill()
    return found, choice


def serves(cluster: Cluster, seconds: float = 8) -> None:
    """Run under load, then come to rest with the invariants."""
    cluster.world.run_for(seconds)
    assert cluster.admins.counts.acknowledged > 10
    cluster.busy = False
    assert cluster.world.run_for(60, cluster.at_rest), cluster.unrest()
    cluster.invariants.at_the_end()


def holds(cluster: Cluster, what: Survivor) -> None:
    """Everything that the survivor had is in every controller's log, at its place."""
    for controller in cluster.running().values():
        ledger = controller.ledger
        assert ledger is not None
        assert ledger.hash_at(what.end.log_end) == what.end.head


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lags_s", [0.0, 1.5])
def test_one_survivor_goes_on_alone_and_wiped_nodes_follow_it(seed: int, lags_s: float) -> None:
    made = under_load(seed)
    survivor = survivor_of(made)
    acknowledged = made.admins.counts.acknowledged
    assert acknowledged
    copies = lose_all_but(made, survivor, lags_s=lags_s)
    new = again(made, 100 + seed, {survivor: copies[survivor]})
    held, choice = looked_at(new, survivor)
    assert sorted({1, 2, 3} - {survivor}) == list(choice.absent)
    assert not choice.nothing_lost
    plan = recover(new, survivor)
    assert plan.generation.start.generation.number == 2
    start(new)
    serves(new)
    assert new.leader() == survivor
    holds(new, held)
    roles = {n: c.quorum.status().role for n, c in new.running().items()}
    assert roles == {n: "leader" if n == survivor else "observer" for n in new.hosts}
    for controller in new.running().values():
        assert controller.image.quorum.generation == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_three_voters_begin_with_whole_folders_and_one_of_them_may_die(seed: int) -> None:
    made = under_load(seed)
    survivor = survivor_of(made)
    copies = lose_all_but(made, survivor, lags_s=1.0)
    new = again(made, 200 + seed, {survivor: copies[survivor]})
    held, _ = looked_at(new, survivor)
    recover(new, survivor, voters=(1, 2, 3))
    start(new)
    assert new.world.run_for(10, lambda: new.leader() is not None)
    first = new.leader()
    assert first is not None
    new.world.run_for(2)
    new.hosts[first].kill()
    assert new.world.run_for(10, lambda: new.leader() not in (None, first))
    new.start(first)
    serves(new)
    holds(new, held)
    assert {c.quorum.status().role for c in new.running().values()} == {"leader", "follower"}


@pytest.mark.parametrize("seed", SEEDS)
def test_old_nodes_come_back_and_are_refused(seed: int) -> None:
    made = under_load(seed)
    survivor = survivor_of(made)
    copies = lose_all_but(made, survivor, lags_s=1.0)
    new = again(made, 300 + seed, {survivor: copies[survivor]})
    held, _ = looked_at(new, survivor)
    recover(new, survivor)
    start(new)
    new.world.run_for(3)
    for old in [n for n in new.hosts if n != survivor]:
        new.hosts[old].kill()
        new.hosts[old].platter.restore(copies[old])
        new.start(old)
        new.world.run_for(3)
        context = new.controllers[old].quorum.context  # type: ignore[attr-defined]
        assert context.formation.generation.number == 1
        assert context.replicas.linked() == []
        assert context.counters["greeting_refused"] > 0
        assert not new.controllers[old].active
        assert new.leader() == survivor
        of_leader = new.controllers[survivor].quorum.context  # type: ignore[attr-defined]
        assert of_leader.counters["greeting_refused"] > 0
        # As its refusal says: its folder is moved away.
        new.hosts[old].kill()
        new.hosts[old].platter.wipe()
        new.invariants.forgot(old)
        new.start(old)
    serves(new)
    holds(new, held)


def test_of_folders_of_several_moments_the_newest_is_chosen() -> None:
    """Backups of a running cluster, each of another moment: else nobody would be elected."""
    made, copies = under_load(7), {}
    for node_id, host in made.hosts.items():
        copies[node_id] = host.platter.snapshot()
        made.world.run_for(2)
    new = again(made, 400, copies)
    plan = recover(new, 1, 2, 3, voters=(1, 2, 3))
    assert plan.survivor.node_id == 3
    start(new)
    serves(new)
    holds(new, plan.survivor)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_survivor_with_a_damaged_journal_gives_all_that_its_ledger_holds(seed: int) -> None:
    made = under_load(seed)
    survivor = survivor_of(made)
    end = made.controllers[survivor].image.offset
    copies = lose_all_but(made, survivor, lags_s=0.0)
    new = again(made, 500 + seed, {survivor: copies[survivor]})
    platter = new.hosts[survivor].platter
    name = max(n for n in platter.names if n.endswith(".wal"))
    platter.flip_bit(name, len(platter.names[name].content) // 2)
    held, choice = looked_at(new, survivor)
    assert held.journal.damage
    assert any("is damaged" in said for said in choice.losses)
    assert held.end.log_end > 0
    assert held.end.log_end >= end - 200
    recover(new, survivor)
    start(new)
    serves(new)
    holds(new, held)
