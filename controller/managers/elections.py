"""Elects the leader of one partition, and makes the record that says so.

These are pure functions of one partition's state. `partition_events` applies them to all partitions
of a broker. The order of the steps is that of Kafka's PartitionChangeBuilder (KIP-455, 704, 841,
966).

A replica is *acceptable* if its broker is active, or is just being unfenced, and is not the broker
that leaves. A replica is *valid* if it is acceptable and in the target ISR. If the target ISR is
empty, it must be in the ELR instead.
"""

from collections.abc import Callable, Collection
from enum import Enum
from typing import NamedTuple

from metadata.image.topics import Partition
from metadata.records import (
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
    """The topic's min.insync.replicas."""
    mode: ElectionMode = ElectionMode.ONLINE


class _Target(NamedTuple):
    """ISR and ELR as they should be, before the election changes them."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known: tuple[int, ...]


class _Elected(NamedTuple):
    leader: int
    unclean: bool = False


def change_partition(
    topic_id: bytes,
    partition_id: int,
    partition: Partition,
    *,
    target_isr: tuple[int, ...],
    acceptable: Callable[[int], bool],
    rules: Rules,
    unclean_shutdown: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """Return the record that brings a partition to `target_isr` with a fitting leader.

    None when nothing would change. Without ELR the last member of an ISR stays in it.
    `unclean_shutdown` names brokers that may have lost writes: they never enter the ELR.
    """
    target = _target(partition, target_isr, rules, unclean_shutdown)
    elected = _elect(partition, target, acceptable, rules)
    isr, elr, last_known = target
    recovery = int(partition.leader_recovery_state)
    if elected.unclean:
        isr, elr, last_known = (elected.leader,), (), ()
        recovery = int(LeaderRecoveryState.RECOVERING)
    elif elected.leader != NO_LEADER and elected.leader not in isr:
        isr, elr = (elected.leader,), tuple(r for r in elr if r != elected.leader)
    if rules.elr:
        if not isr and partition.isr:
            last_known = (partition.leader,)
        elif isr and elected.leader != NO_LEADER:
            last_known = ()
    elif not isr:
        isr = partition.isr
    change = PartitionChangeRecord(
        partition_id,
        topic_id,
        isr=None if isr == partition.isr else isr,
        leader=NO_LEADER_CHANGE if elected.leader == partition.leader else elected.leader,
        leader_recovery_state=(
            LEADER_RECOVERY_STATE_UNTOUCHED
            if recovery == partition.leader_recovery_state
            else recovery
        ),
        eligible_leader_replicas=None if elr == partition.elr else elr,
        last_known_elr=None if last_known == partition.last_known_elr else last_known,
    )
    return None if change == PartitionChangeRecord(partition_id, topic_id) else change


def _target(
    partition: Partition,
    target_isr: tuple[int, ...],
    rules: Rules,
    unclean_shutdown: Collection[int],
) -> _Target:
    """Return ISR and ELR by KIP-966: a replica that leaves a too small ISR becomes eligible."""
    if not rules.elr:
        return _Target(target_isr, partition.elr, partition.last_known_elr)
    if len(target_isr) >= min(rules.min_isr, len(partition.replicas)):
        return _Target(target_isr, (), ())
    eligible = {*partition.elr, *partition.isr} - {*target_isr} - {*unclean_shutdown}
    return _Target(target_isr, tuple(sorted(eligible)), partition.last_known_elr)


def _elect(
    partition: Partition, target: _Target, acceptable: Callable[[int], bool], rules: Rules
) -> _Elected:
    eligible = target.isr
    if rules.elr and not target.isr:
        eligible = target.elr

    def valid(replica: int) -> bool:
        return replica in eligible and acceptable(replica)

    first = partition.replicas[:1] if rules.mode is ElectionMode.PREFERRED else ()
    for replica in (*first, partition.leader, *partition.replicas):
        if valid(replica):
            return _Elected(replica)
    if rules.elr and not target.isr and not target.elr and len(target.last_known) == 1:
        last_known = target.last_known[0]
        # Kafka assumes here that the last leader is alive. We check it.
        if acceptable(last_known):
            return _Elected(last_known, unclean=True)
    if rules.mode is ElectionMode.UNCLEAN:
        for replica in partition.replicas:
            if acceptable(replica):
                return _Elected(replica, unclean=True)
    return _Elected(NO_LEADER)
