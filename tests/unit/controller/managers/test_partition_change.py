"""The record that changes one partition: each mode of election, reassignment, directories, ELR.

The tables are named by the sections of Kafka's rules: 4 (choosing a leader), 7 (reassignment) and
9 (min ISR and ELR).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.managers.partition_change import ElectionMode, Rules, Target, change_partition
from metadata.image import EMPTY, MetadataDelta, Partition
from metadata.image.partition import partition_record
from metadata.records import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    TopicRecord,
)

TOPIC = b"t" * 16
ONLINE, PREFERRED, UNCLEAN = ElectionMode.ONLINE, ElectionMode.PREFERRED, ElectionMode.UNCLEAN
ELR = Rules(elr=True, min_isr=2)
PLAIN = Rules(min_isr=2)
D1, D2, D3, D4 = (bytes([n]) * 16 for n in (0xD1, 0xD2, 0xD3, 0xD4))


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


def change(partition, target, alive, rules, **options):
    return change_partition(
        TOPIC, 0, partition, target, acceptable=set(alive).__contains__, rules=rules, **options
    )


def after(partition, target, alive, rules, **options):
    """Return the partition that replay makes of the change."""
    record = change(partition, target, alive, rules, **options)
    if record is None:
        return partition
    delta = MetadataDelta(EMPTY)
    delta.replay_all([TopicRecord("t", TOPIC), partition_record((TOPIC, 0), partition), record], 0)
    delta.finish_batch(3, 0, 0)
    return delta.apply().topics.partitions[TOPIC, 0]


@pytest.mark.parametrize(
    ("mode", "isr", "alive", "leader"),
    [
        (ONLINE, (1, 2, 3), {1, 2, 3}, 2),  # (1) the leader that is there
        (ONLINE, (1, 3), {1, 2, 3}, 1),  # (2) the first valid one
        (PREFERRED, (1, 2, 3), {1, 2, 3}, 1),
        (PREFERRED, (1, 2, 3), {2, 3}, 2),
        (PREFERRED, (3,), {2, 3}, 3),
        (ONLINE, (1,), {2, 3}, NO_LEADER),
        (PREFERRED, (1,), {2, 3}, NO_LEADER),  # never turns unclean
        (UNCLEAN, (1,), {2, 3}, 2),
        (UNCLEAN, (1,), set(), NO_LEADER),
        (UNCLEAN, (3,), {2, 3}, 3),  # a clean one comes first
    ],
)
def test_section_4_order_of_attempts(mode, isr, alive, leader):
    partition = start(leader=2)
    assert after(partition, Target(isr=isr), alive, Rules(mode=mode)).leader == leader


LOST = {"isr": (), "leader": -1}


@pytest.mark.parametrize(
    ("partition", "target_isr", "alive", "mode", "expected"),
    [
        # (isr, elr, last known, leader, recovery state) afterwards
        pytest.param(
            {}, (1, 2), {1, 2}, ONLINE, ((1, 2), (), (), 1, 0), id="9-1 isr at min isr: no elr"
        ),
        pytest.param(
            {"isr": (1, 2)}, (1,), {1}, ONLINE, ((1,), (2,), (), 1, 0), id="9-2 who leaves, enters"
        ),
        pytest.param(
            {"isr": (3,), "leader": 3, "elr": (2,)},
            (),
            set(),
            ONLINE,
            ((), (2, 3), (3,), -1, 0),
            id="9-3 isr becomes empty: last known leader",
        ),
        pytest.param(
            {"isr": (3,), "leader": 3, "elr": (1, 2)},
            (3, 2),
            {2, 3},
            ONLINE,
            ((3, 2), (), (), 3, 0),
            id="9-5 a member of the elr rejoins the isr",
        ),
        pytest.param(
            {**LOST, "elr": (2, 3), "last_known_elr": (3,)},
            (),
            {2},
            ONLINE,
            ((2,), (3,), (), 2, 0),
            id="4 elected from the elr: clean",
        ),
        pytest.param(
            {**LOST, "last_known_elr": (3,)},
            (),
            {3},
            ONLINE,
            ((3,), (), (), 3, 1),
            id="4 last known leader: unclean",
        ),
        pytest.param(
            {**LOST, "last_known_elr": (3,)},
            (),
            {1, 2},
            ONLINE,
            ((), (), (3,), -1, 0),
            id="4 last known leader is not alive",
        ),
        pytest.param(
            {**LOST, "last_known_elr": (9,)},
            (),
            {1, 9},
            ONLINE,
            ((), (), (9,), -1, 0),
            id="4 last known leader is no replica any more",
        ),
        pytest.param(
            {**LOST, "last_known_elr": (3, 2)},
            (),
            {2, 3},
            ONLINE,
            ((), (), (3, 2), -1, 0),
            id="4 two last known leaders are none",
        ),
        pytest.param(
            {"isr": (3,), "leader": -1},
            (),
            set(),
            ONLINE,
            ((), (3,), (), -1, 0),
            id="9 the last known leader is never nobody",
        ),
        pytest.param(
            {"isr": (3,), "leader": 3, "elr": (2,), "replicas": (3, 2, 1)},
            (),
            {1},
            UNCLEAN,
            ((1,), (), (), 1, 1),
            id="4 unclean: elr and last known leader are cleared",
        ),
    ],
)
def test_section_9_elr(partition, target_isr, alive, mode, expected):
    found = after(start(**partition), Target(isr=target_isr), alive, ELR._replace(mode=mode))
    assert (
        found.isr,
        found.elr,
        found.last_known_elr,
        found.leader,
        found.leader_recovery_state,
    ) == expected


def test_who_stopped_uncleanly_does_not_stay_eligible():
    partition = start(isr=(3,), elr=(1, 2), leader=3)
    record = change(partition, Target(isr=(3,)), {3}, ELR, unclean_shutdown=(1,))
    assert record.eligible_leader_replicas == (2,)


def test_who_is_elected_and_may_take_writes_alone_leaves_nobody_eligible():
    partition = start(isr=(), leader=-1, elr=(1, 2), last_known_elr=(2,))
    found = after(partition, Target(), {2}, Rules(elr=True, min_isr=1))
    assert (found.isr, found.elr, found.leader) == ((2,), (), 2)


def test_an_elr_that_was_left_behind_is_cleared_and_elects_nobody():
    partition = start(isr=(3,), elr=(1,), leader=3)
    found = after(partition, Target(isr=()), {1}, PLAIN)
    assert (found.isr, found.elr, found.leader) == ((3,), (), -1)


def test_a_leader_outside_the_target_isr_does_not_stay_without_being_in_the_isr():
    found = after(start(), Target(isr=(2,)), {1}, PLAIN._replace(mode=UNCLEAN))
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), 1)


@pytest.mark.parametrize(
    ("partition", "target", "alive", "expected"),
    [
        # (replicas, isr, removing, adding, leader, leader epoch) afterwards
        pytest.param(
            {},
            Target(replicas=(4, 2, 3, 1), removing=(1,), adding=(4,)),
            {1, 2, 3, 4},
            ((4, 2, 3, 1), (1, 2, 3), (1,), (4,), 1, 0),
            id="start: isr untouched, no epoch",
        ),
        pytest.param(
            {"replicas": (4, 2, 3, 1), "removing": (1,), "adding": (4,)},
            Target(isr=(1, 2, 3, 4)),
            {1, 2, 3, 4},
            ((4, 2, 3), (2, 3, 4), (), (), 4, 1),
            id="finish: the leader goes",
        ),
        pytest.param(
            {"replicas": (4, 2, 3, 1), "removing": (1,), "adding": (4,), "leader": 2},
            Target(isr=(1, 2, 3, 4)),
            {1, 2, 3, 4},
            ((4, 2, 3), (2, 3, 4), (), (), 2, 1),
            id="finish: the leader stays, and its epoch rises",
        ),
        pytest.param(
            {"replicas": (1, 2, 3, 4), "adding": (4,)},
            Target(isr=(1, 2, 3, 4)),
            {1, 2, 3, 4},
            ((1, 2, 3, 4), (1, 2, 3, 4), (), (), 1, 0),
            id="finish: nothing is removed, no epoch",
        ),
        pytest.param(
            {"replicas": (4, 2, 3, 1), "removing": (1,), "adding": (4,), "isr": (1, 2)},
            Target(isr=(1, 2)),
            {1, 2, 3, 4},
            ((4, 2, 3, 1), (1, 2), (1,), (4,), 1, 0),
            id="not finished: 4 is not in sync",
        ),
        pytest.param(
            {"replicas": (4, 2, 3, 1), "removing": (1,), "adding": (4,), "isr": (1, 2)},
            Target(isr=(1, 2, 4)),
            {1, 2, 3, 4},
            ((4, 2, 3), (2, 4), (), (), 4, 1),
            id="finish: 3 is not in sync, but stays (Kafka 4.3 and later)",
        ),
        pytest.param(
            {"replicas": (2, 3, 1), "removing": (1,), "isr": (1, 2)},
            Target(isr=(2, 1)),
            {1, 2, 3},
            ((2, 3, 1), (2, 1), (1,), (), 1, 0),
            id="not finished: fewer copies, and 3 is not in sync",
        ),
        pytest.param(
            {"replicas": (1, 2), "removing": (1, 2), "isr": (1, 2)},
            Target(isr=(1,)),
            {1},
            ((1, 2), (1,), (1, 2), (), 1, 0),
            id="not finished: the isr would be empty",
        ),
        pytest.param(
            {"replicas": (1, 4), "removing": (1,), "adding": (4,), "isr": (1,)},
            Target(isr=(4,)),
            {4},
            ((4,), (4,), (), (), 4, 1),
            id="fencing the old leader finishes it",
        ),
        pytest.param(
            {"replicas": (4, 2, 3, 1), "removing": (1,), "adding": (4,)},
            Target(replicas=(2, 3, 1), isr=(1, 2, 3), removing=(), adding=()),
            {1, 2, 3, 4},
            ((2, 3, 1), (1, 2, 3), (), (), 1, 1),
            id="cancel: a replica is lost, the epoch rises",
        ),
        pytest.param(
            {},
            Target(replicas=(3, 2, 1)),
            {1, 2, 3},
            ((3, 2, 1), (1, 2, 3), (), (), 1, 0),
            id="another order only",
        ),
    ],
)
def test_section_7_reassignment(partition, target, alive, expected):
    found = after(start(**partition), target, alive, PLAIN)
    assert (
        found.replicas,
        found.isr,
        found.removing,
        found.adding,
        found.leader,
        found.leader_epoch,
    ) == expected


def test_the_elr_holds_replicas_only():
    """Replica 1 leaves the ISR because it leaves the partition, so it is not eligible."""
    partition = start(replicas=(4, 2, 1), removing=(1,), adding=(4,), isr=(1, 2))
    found = after(partition, Target(isr=(1, 2, 4)), {1, 2, 4}, ELR._replace(min_isr=3))
    assert (found.replicas, found.isr, found.elr) == ((4, 2), (2, 4), ())


@pytest.mark.parametrize(
    ("before", "target", "directories"),
    [
        ((D1, D2, D3), Target(isr=(1, 2)), None),
        ((D1, D2, D3), Target(directories={2: D4}), (D1, D4, D3)),
        ((D1, D2, D3), Target(directories={2: D2}), None),
        ((D1, D2, D3), Target(replicas=(3, 2, 1)), (D3, D2, D1)),
        ((D1, D2, D3), Target(replicas=(4, 2, 3, 1)), (DIRECTORY_UNASSIGNED, D2, D3, D1)),
        (
            (D1, D2, D3),
            Target(replicas=(4, 2, 3, 1), directories={4: D4}),
            (D4, D2, D3, D1),
        ),
        ((), Target(replicas=(3, 2, 1)), None),
        (
            (),
            Target(replicas=(1, 2, 3, 4)),
            (*(DIRECTORY_MIGRATING,) * 3, DIRECTORY_UNASSIGNED),
        ),
    ],
)
def test_directories_follow_their_replicas(before, target, directories):
    record = change(start(directories=before), target, {1, 2, 3, 4}, PLAIN)
    assert (record and record.directories) == directories


def test_the_caller_names_the_directory_of_a_new_replica():
    record = change(
        start(directories=(D1, D2, D3)),
        Target(replicas=(1, 2, 3, 4)),
        {1},
        PLAIN,
        default_directory={4: D4}.__getitem__,
    )
    assert record.directories == (D1, D2, D3, D4)


@pytest.mark.parametrize(
    ("before", "target", "mode", "found"),
    [
        (1, 0, ONLINE, 0),
        (0, None, ONLINE, -1),
        (1, 1, ONLINE, -1),
        (1, 0, UNCLEAN, -1),  # an unclean election ends in RECOVERING whatever is asked
    ],
)
def test_recovery_state(before, target, mode, found):
    """The only replica in sync is fenced in the last row, so an unclean election follows."""
    partition = start(isr=(1,), leader_recovery_state=before)
    alive = {2, 3} if mode is UNCLEAN else {1}
    record = change(partition, Target(recovery_state=target), alive, PLAIN._replace(mode=mode))
    assert (-1 if record is None else record.leader_recovery_state) == found


def test_nothing_changes_without_a_record():
    assert change(start(), Target(isr=(1, 2, 3), replicas=(1, 2, 3)), {1, 2, 3}, ELR) is None


BROKERS = (1, 2, 3, 4)


@given(
    elr=st.booleans(),
    min_isr=st.integers(1, 3),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("fence", "unfence", "alter", "reassign", "cancel", "prefer")),
            st.sampled_from(list(ElectionMode)),
            st.permutations(BROKERS),
            st.integers(1, 4),
        ),
        max_size=25,
    ),
)
def test_invariants_hold_in_every_history(elr, min_isr, steps):
    """The managers ask for such targets; what they build never breaks the invariants."""
    partition, alive = start(), set(BROKERS)
    for act, mode, order, some in steps:
        before, broker = partition, order[0]
        rules = Rules(elr, min(min_isr, len(partition.replicas)), mode)
        target = Target()
        if act == "fence":
            alive.discard(broker)
            target = Target(isr=tuple(r for r in partition.isr if r != broker))
        elif act == "unfence":
            alive.add(broker)
        elif act == "alter" and partition.leader != NO_LEADER:
            members = {*order[:some], partition.leader} & alive & {*partition.replicas}
            target = Target(isr=tuple(sorted(members | {partition.leader})), recovery_state=0)
        elif act == "reassign":
            wanted = tuple(order[:some])
            leaving = tuple(sorted({*partition.replicas} - {*wanted}))
            coming = tuple(sorted({*wanted} - {*partition.replicas}))
            target = Target(
                replicas=wanted + leaving,
                removing=leaving or partition.removing,
                adding=coming or partition.adding,
            )
            if not {*target.removing, *target.adding} <= {*target.replicas}:
                continue
        elif act == "cancel" and partition.adding:
            kept = tuple(r for r in partition.replicas if r not in partition.adding)
            left = tuple(r for r in partition.isr if r in kept)
            if not left:
                continue
            target = Target(replicas=kept, isr=left, removing=(), adding=())
        partition = after(partition, target, alive, rules)
        _check(before, partition, alive, elr)
        if elr and len(partition.isr) >= min(min_isr, len(before.replicas)):
            assert partition.elr == ()


def _check(before, p, alive, elr):
    assert p.leader == NO_LEADER or p.leader in p.isr
    assert p.leader == NO_LEADER or p.leader in alive
    assert set(p.isr) <= set(p.replicas)
    assert len(set(p.isr)) == len(p.isr)
    assert set(p.elr) <= set(p.replicas)
    assert not set(p.isr) & set(p.elr)
    assert p.isr or elr
    assert p.elr == () or elr
    assert p.leader == NO_LEADER or p.last_known_elr == ()
    assert p.leader_epoch - before.leader_epoch in (0, 1)
    assert p.leader_epoch > before.leader_epoch or p.leader == before.leader
    assert p.leader_epoch > before.leader_epoch or set(before.replicas) <= set(p.replicas)


def test_the_record_says_only_what_changes():
    record = change(start(), Target(isr=(2, 3)), {2, 3}, PLAIN)
    assert (record.isr, record.leader) == ((2, 3), 2)
    assert record.replicas is record.directories is record.eligible_leader_replicas is None
    record = change(start(), Target(isr=(1, 2)), {1, 2, 3}, PLAIN)
    assert (record.isr, record.leader) == ((1, 2), NO_LEADER_CHANGE)
