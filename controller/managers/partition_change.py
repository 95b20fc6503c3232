"""Builds the record that changes one partition: reassignment, ELR, election, ISR, directories.

This is a pure function of one partition's state. Every manager that changes a partition calls it,
so that all of them follow the same rules. The order of the steps is that of Kafka's
PartitionChangeBuilder (KIP-455, 704, 841, 858, 966):

1. complete a reassignment whose added replicas are all in the ISR;
2. compute the ELR from the target ISR;
3. elect a leader;
4. raise the leader epoch if a replica is lost, even if the leader stays;
5. ELR, ISR, last known leader, assignment and recovery state;
6. no record if nothing changes.

A replica is *acceptable* if its broker is active, or is just being unfenced, and is not the broker
that leaves, and its directory is online. A replica is *valid* if it is acceptable and in the target
ISR. If the target ISR is empty, it must be in the ELR instead.

We differ from Kafka where Kafka's builder can return a state that its own rules forbid:

- The last known leader is elected only if it is an acceptable replica. Kafka does not check it.
- The ELR holds replicas only. In Kafka a replica that a reassignment removes can enter it.
- A leader is always in the ISR of the result. Kafka leaves a leader outside the target ISR in
  office if the election finds that same replica again.
- An unclean election always ends in RECOVERING, whatever recovery state the caller asks for.
- The last known leader is never -1.
- Without ELR nobody is elected from an ELR that an older feature level left behind.
- The ELR is sorted. Kafka's order is that of a hash set.
"""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from metadata.image.partition import Partition
from metadata.records import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionChangeRecord,
)


class ElectionMode(Enum):
    """Which replicas an election may choose."""

    ONLINE = "online"
    """The present leader if it is valid, else the first valid replica."""
    PREFERRED = "preferred"
    """The first replica if it is valid, else like ONLINE."""
    UNCLEAN = "unclean"
    """Like ONLINE. If no replica is valid, any acceptable one, and writes may be lost."""


class Rules(NamedTuple):
    """The settings of cluster and topic that an election depends on."""

    elr: bool = False
    """Eligible leader replicas are in use (feature eligible.leader.replicas.version)."""
    min_isr: int = 1
    """The partition's effective min.insync.replicas: at most its number of replicas."""
    mode: ElectionMode = ElectionMode.ONLINE


_NO_DIRECTORIES: Final[Mapping[int, bytes]] = MappingProxyType({})


class Target(NamedTuple):
    """What a partition shall become. None: this part stays as it is."""

    isr: tuple[int, ...] | None = None
    """In this order. Empty: nobody is left in sync."""
    replicas: tuple[int, ...] | None = None
    """All replicas while the reassignment runs: the wanted ones, then those in `removing`."""
    removing: tuple[int, ...] | None = None
    """Replicas that leave when the reassignment completes. Empty: none."""
    adding: tuple[int, ...] | None = None
    """Replicas that the reassignment adds. Empty: none."""
    recovery_state: int | None = None
    """A `LeaderRecoveryState`."""
    directories: Mapping[int, bytes] = _NO_DIRECTORIES
    """By broker: new directories of its replica. The others keep theirs."""


class _Assignment(NamedTuple):
    """ISR and replicas as they should be, before the election."""

    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]


class _Elected(NamedTuple):
    leader: int
    unclean: bool = False


def unassigned(_broker_id: int) -> bytes:
    """Return the directory of a new replica whose broker is to choose one."""
    return DIRECTORY_UNASSIGNED


def change_partition(
    topic_id: bytes,
    partition_id: int,
    partition: Partition,
    target: Target,
    *,
    acceptable: Callable[[int], bool],
    rules: Rules,
    unclean_shutdown: Collection[int] = (),
    default_directory: Callable[[int], bytes] = unassigned,
) -> PartitionChangeRecord | None:
    """Return the record that brings a partition to `target` with a fitting leader.

    None when nothing would change. Without ELR the last member of an ISR stays in it.
    `unclean_shutdown` names brokers that may have lost writes: they never enter the ELR.
    `default_directory` returns the directory of a replica that the partition did not have.
    """
    wanted = _completed(_assignment(partition, target))
    eligible = _eligible(partition, wanted, rules, unclean_shutdown)
    elected = _elect(partition, wanted, eligible, acceptable, rules)
    leader = elected.leader
    isr, elr = _sets(partition, wanted, eligible, elected, rules)
    named = leader != partition.leader or _loses_one(partition.replicas, wanted.replicas)
    change = PartitionChangeRecord(
        partition_id,
        topic_id,
        isr=_if_new(isr, partition.isr),
        leader=leader if named else NO_LEADER_CHANGE,
        replicas=_if_new(wanted.replicas, partition.replicas),
        removing_replicas=_if_new(wanted.removing, partition.removing),
        adding_replicas=_if_new(wanted.adding, partition.adding),
        leader_recovery_state=_recovery_state(partition, target, elected),
        directories=_directories(partition, wanted.replicas, target, default_directory),
        eligible_leader_replicas=_if_new(elr, partition.elr),
        last_known_elr=_if_new(
            _last_known(partition, leader, rules, named=named), partition.last_known_elr
        ),
    )
    return None if change == PartitionChangeRecord(partition_id, topic_id) else change


def _if_new(value: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if value == before else value


def _loses_one(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return before != after and not set(before) <= set(after)


def _assignment(partition: Partition, target: Target) -> _Assignment:
    return _Assignment(
        partition.isr if target.isr is None else target.isr,
        partition.replicas if target.replicas is None else target.replicas,
        partition.removing if target.removing is None else target.removing,
        partition.adding if target.adding is None else target.adding,
    )


def _completed(wanted: _Assignment) -> _Assignment:
    """Complete a reassignment if all replicas that it adds are in the ISR (KIP-455).

    If it removes more than it adds, the number of copies shrinks. Then all replicas that stay must
    be in the ISR, too. It is not completed if the ISR or the replicas would be empty. These are
    Kafka's rules since 4.3. Before, a dead replica that stays held up every reassignment.
    """
    if not wanted.removing and not wanted.adding:
        return wanted
    isr = tuple(replica for replica in wanted.isr if replica not in wanted.removing)
    replicas = tuple(replica for replica in wanted.replicas if replica not in wanted.removing)
    needed = wanted.adding if len(wanted.adding) >= len(wanted.removing) else replicas
    if not isr or not replicas or not {*wanted.adding, *needed} <= {*isr}:
        return wanted
    return _Assignment(isr, replicas, (), ())


def _eligible(
    partition: Partition, wanted: _Assignment, rules: Rules, unclean_shutdown: Collection[int]
) -> tuple[int, ...]:
    """Return the ELR: a replica that leaves a too small ISR becomes eligible (KIP-966)."""
    if not rules.elr or len(wanted.isr) >= rules.min_isr:
        return ()
    eligible = {*partition.elr, *partition.isr} - {*wanted.isr} - {*unclean_shutdown}
    return tuple(sorted(eligible & {*wanted.replicas}))


def _elect(
    partition: Partition,
    wanted: _Assignment,
    elr: tuple[int, ...],
    acceptable: Callable[[int], bool],
    rules: Rules,
) -> _Elected:
    candidates = wanted.isr or elr
    first = wanted.replicas[:1] if rules.mode is ElectionMode.PREFERRED else ()
    for replica in (*first, partition.leader, *wanted.replicas):
        if replica in candidates and acceptable(replica):
            return _Elected(replica)
    if rules.elr and not candidates and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        # Kafka assumes here that the last leader is alive and still a replica. We check it.
        if last_known in wanted.replicas and acceptable(last_known):
            return _Elected(last_known, unclean=True)
    if rules.mode is ElectionMode.UNCLEAN:
        for replica in wanted.replicas:
            if acceptable(replica):
                return _Elected(replica, unclean=True)
    return _Elected(NO_LEADER)


def _sets(
    partition: Partition,
    wanted: _Assignment,
    eligible: tuple[int, ...],
    elected: _Elected,
    rules: Rules,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ISR and ELR after the election."""
    leader = elected.leader
    if elected.unclean:
        return (leader,), ()
    if leader != NO_LEADER and leader not in wanted.isr:
        # If min ISR was lowered, the leader may take writes alone. Who misses them isn't eligible.
        others = () if rules.min_isr <= 1 else eligible
        return (leader,), tuple(replica for replica in others if replica != leader)
    if not wanted.isr and not rules.elr:
        return partition.isr, eligible
    return wanted.isr, eligible


def _recovery_state(partition: Partition, target: Target, elected: _Elected) -> int:
    """Return the recovery state for the record: a new one, or that it is untouched (KIP-704)."""
    state = target.recovery_state
    if elected.unclean:
        state = int(LeaderRecoveryState.RECOVERING)
    if state is None or state == partition.leader_recovery_state:
        return LEADER_RECOVERY_STATE_UNTOUCHED
    return state


def _last_known(partition: Partition, leader: int, rules: Rules, *, named: bool) -> tuple[int, ...]:
    """Return whom the partition remembers as its last leader while it has none (KIP-966).

    It changes only when the record names a leader.
    """
    remembered = partition.last_known_elr
    if not rules.elr or not named:
        return remembered
    if leader != NO_LEADER:
        return ()
    if remembered or partition.leader == NO_LEADER:
        return remembered
    return (partition.leader,)


def _directories(
    partition: Partition,
    replicas: tuple[int, ...],
    target: Target,
    default_directory: Callable[[int], bytes],
) -> tuple[bytes, ...] | None:
    """Return the directories if they change; one for each replica (KIP-858)."""
    if replicas == partition.replicas and not target.directories:
        return None
    # Kafka reads a partition without directories in the same way.
    before = partition.directories or (DIRECTORY_MIGRATING,) * len(partition.replicas)
    known = {**dict(zip(partition.replicas, before, strict=True)), **target.directories}
    after = tuple(
        known[replica] if replica in known else default_directory(replica) for replica in replicas
    )
    return None if after == before else after
