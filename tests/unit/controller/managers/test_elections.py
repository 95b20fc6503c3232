"""Electing leaders of partitions: each mode, and worked cases of several events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.managers.elections import ElectionMode, Rules, change_partition
from metadata.image import Partition
from metadata.records import NO_LEADER, NO_LEADER_CHANGE

TOPIC = b"t" * 16
ELR = Rules(elr=True, min_isr=2)
PLAIN = Rules(min_isr=2)


def start(**changes):
    fields = {
        "replicas": (1, 2, 3),
        "directories": (),
        "isr": (1, 2, 3),
        "elr": (),
        "last_known_elr": (),
        "removing": (),
        "adding": (),
        "leader": 1,
        "leader_recovery_state": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return Partition(**{**fields, **changes})


class Scenario:
    """A partition and its three brokers."""

    def __init__(self, rules, partition=None):
        self.rules = rules
        self.partition = partition or start()
        self.alive = {1, 2, 3}

    def fence(self, broker):
        self.alive.discard(broker)
        target = tuple(r for r in self.partition.isr if r != broker)
        return self.apply(target)

    def unfence(self, broker):
        self.alive.add(broker)
        return self.apply(self.partition.isr) if self.partition.leader == -1 else self

    def apply(self, target):
        p = self.partition
        change = change_partition(
            TOPIC, 0, p, target_isr=target, acceptable=self.alive.__contains__, rules=self.rules
        )
        if change is None:
            return self
        named = change.leader != NO_LEADER_CHANGE

        def new(value, old):
            return old if value is None else value

        self.partition = start(
            isr=new(change.isr, p.isr),
            elr=new(change.eligible_leader_replicas, p.elr),
            last_known_elr=new(change.last_known_elr, p.last_known_elr),
            leader=change.leader if named else p.leader,
            leader_epoch=p.leader_epoch + named,
            partition_epoch=p.partition_epoch + 1,
            leader_recovery_state=(
                p.leader_recovery_state
                if change.leader_recovery_state < 0
                else change.leader_recovery_state
            ),
        )
        return self

    def seen(self):
        p = self.partition
        return p.leader, p.isr, set(p.elr), p.last_known_elr, p.leader_epoch, p.partition_epoch


def a(rules):
    return Scenario(rules).fence(1)


def e(rules):
    return a(rules).fence(2)


def f(rules):
    return e(rules).fence(3)


@pytest.mark.parametrize(
    ("case", "rules", "expected"),
    [
        ("a", PLAIN, (2, (2, 3), set(), (), 1, 1)),
        ("a", ELR, (2, (2, 3), set(), (), 1, 1)),
        ("b", PLAIN, (2, (2, 3), set(), (), 1, 1)),
        ("b", ELR, (2, (2, 3), set(), (), 1, 1)),
        ("e", PLAIN, (3, (3,), set(), (), 2, 2)),
        ("e", ELR, (3, (3,), {2}, (), 2, 2)),
        ("f", PLAIN, (-1, (3,), set(), (), 3, 3)),
        ("f", ELR, (-1, (), {2, 3}, (3,), 3, 3)),
        ("g", PLAIN, (-1, (3,), set(), (), 3, 3)),
        ("g", ELR, (2, (2,), {3}, (), 4, 4)),
        ("h", PLAIN, (3, (3,), set(), (), 4, 4)),
        ("h", ELR, (3, (3,), {2}, (), 4, 4)),
    ],
)
def test_worked_cases(case, rules, expected):
    scenarios = {
        "a": a,
        "b": lambda r: a(r).unfence(1),
        "e": e,
        "f": f,
        "g": lambda r: f(r).unfence(2),
        "h": lambda r: f(r).unfence(3),
    }
    assert scenarios[case](rules).seen() == expected


def test_case_i_unclean_election_loses_what_must_be_lost_and_says_so():
    scenario = f(PLAIN)
    scenario.rules = PLAIN._replace(mode=ElectionMode.UNCLEAN)
    scenario.unfence(2)
    assert scenario.seen() == (2, (2,), set(), (), 4, 4)
    assert scenario.partition.leader_recovery_state == 1
    clean = f(ELR)
    clean.rules = ELR._replace(mode=ElectionMode.UNCLEAN)
    clean.unfence(2)
    assert clean.partition.leader_recovery_state == 0
    assert clean.seen()[:3] == (2, (2,), {3})


@pytest.mark.parametrize(
    ("mode", "isr", "alive", "leader"),
    [
        (ElectionMode.ONLINE, (1, 2, 3), {1, 2, 3}, 2),  # (1) the leader that is there
        (ElectionMode.ONLINE, (1, 3), {1, 2, 3}, 1),  # (2) the first valid one
        (ElectionMode.PREFERRED, (1, 2, 3), {1, 2, 3}, 1),
        (ElectionMode.PREFERRED, (1, 2, 3), {2, 3}, 2),
        (ElectionMode.PREFERRED, (3,), {2, 3}, 3),
        (ElectionMode.ONLINE, (1,), {2, 3}, NO_LEADER),
        (ElectionMode.PREFERRED, (1,), {2, 3}, NO_LEADER),  # never turns unclean
        (ElectionMode.UNCLEAN, (1,), {2, 3}, 2),
        (ElectionMode.UNCLEAN, (1,), set(), NO_LEADER),
        (ElectionMode.UNCLEAN, (3,), {2, 3}, 3),  # a clean one comes first
    ],
)
def test_order_of_attempts(mode, isr, alive, leader):
    partition = start(leader=2)
    change = change_partition(
        TOPIC, 0, partition, target_isr=isr, acceptable=alive.__contains__, rules=Rules(mode=mode)
    )
    got = 2 if change is None or change.leader == NO_LEADER_CHANGE else change.leader
    assert got == leader


def test_the_last_known_leader_leads_again_only_if_it_is_alive():
    lost = start(isr=(), elr=(), last_known_elr=(3,), leader=-1)
    for alive, leader in (({3}, 3), ({1, 2}, None)):
        change = change_partition(
            TOPIC, 0, lost, target_isr=(), acceptable=alive.__contains__, rules=ELR
        )
        assert (change and change.leader) == leader
        if change is not None:
            assert change.leader_recovery_state == 1
            assert change.isr == (3,)


def test_who_stopped_uncleanly_does_not_stay_eligible():
    partition = start(isr=(3,), elr=(1, 2), leader=3)
    change = change_partition(
        TOPIC,
        0,
        partition,
        target_isr=(3,),
        acceptable={3}.__contains__,
        rules=ELR,
        unclean_shutdown=(1,),
    )
    assert change.eligible_leader_replicas == (2,)


@given(
    rules=st.builds(
        Rules,
        elr=st.booleans(),
        min_isr=st.integers(1, 3),
        mode=st.sampled_from(list(ElectionMode)),
    ),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=20),
)
def test_invariants_hold_in_every_history_of_fencing(rules, steps):
    scenario = Scenario(rules)
    for fence, broker in steps:
        before = scenario.partition
        scenario.fence(broker) if fence else scenario.unfence(broker)
        p = scenario.partition
        assert p.leader == -1 or p.leader in p.isr
        assert p.leader == -1 or p.leader in scenario.alive
        assert set(p.isr) <= set(p.replicas)
        assert not set(p.isr) & set(p.elr)
        assert p.isr or rules.elr
        assert set(p.isr) & scenario.alive or p.leader == -1
        if len(p.isr) >= min(rules.min_isr, 3):
            assert p.elr == ()
        assert p.leader_epoch >= before.leader_epoch
        assert (p.leader_epoch > before.leader_epoch) or p.leader == before.leader
