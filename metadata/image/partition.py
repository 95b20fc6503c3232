"""The state of one partition, and the record that restores it."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from metadata.image.replay_error import ReplayError
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER, PartitionRecord, Record

RECOVERY_STATES: Final = (0, 1)
"""Recovered, recovering."""


class Partition(msgspec.Struct, frozen=True, gc=False):
    """The state of one partition (KIP-455, 704, 858, 966). Replicas and leader are broker ids."""

    replicas: tuple[int, ...]
    """The first is the preferred leader."""
    directories: tuple[bytes, ...]
    """The directory id of each replica, in the order of `replicas`; empty: not known."""
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    """-1: there is none."""
    leader_recovery_state: int
    """0 recovered, 1 recovering."""
    leader_epoch: int
    partition_epoch: int

    @property
    def moving(self) -> bool:
        """A reassignment is running (KIP-455)."""
        return bool(self.adding or self.removing)


def partition_record(key: PlainPartitionKey, partition: Partition) -> PartitionRecord:
    """Return the record that restores a partition. An empty ELR is written as None."""
    return PartitionRecord(
        key[1],
        key[0],
        partition.replicas,
        partition.isr,
        partition.removing,
        partition.adding,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.leader_recovery_state,
        partition.directories,
        partition.elr or None,
        partition.last_known_elr or None,
    )


def partition_records(key: PlainPartitionKey, partition: Partition) -> tuple[Record, ...]:
    """Return the records that restore a partition: one."""
    return (partition_record(key, partition),)


def partition_of(
    record: PartitionRecord, intern: Callable[[Any, Any], Any], offset: int
) -> Partition:
    """Return the state that a record sets.

    `intern(one, one)` returns the object that stands for all equals of `one`. Raises ReplayError.
    """
    leader, replicas, isr = record.leader, record.replicas, record.isr
    if (
        record.partition_id < 0
        or leader < NO_LEADER
        or record.leader_recovery_state not in RECOVERY_STATES
    ):
        raise ReplayError(
            offset,
            f"a partition can't have number {record.partition_id}, leader {leader}, "
            f"recovery state {record.leader_recovery_state}",
        )
    replicas = intern(replicas, replicas)
    if replicas and replicas[0] == leader:
        # Python makes a new object for each number above 256 that is decoded.
        leader = replicas[0]
    elr, last_known = record.eligible_leader_replicas or (), record.last_known_elr or ()
    removing, adding = record.removing_replicas, record.adding_replicas
    return Partition(
        replicas,
        checked_directories(record.directories, replicas, intern, offset),
        intern(isr, isr),
        elr and intern(elr, elr),
        last_known and intern(last_known, last_known),
        removing and intern(removing, removing),
        adding and intern(adding, adding),
        leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
    )


def checked_directories(
    directories: tuple[bytes, ...],
    replicas: tuple[int, ...],
    intern: Callable[[Any, Any], Any],
    offset: int,
) -> tuple[bytes, ...]:
    """Return the directories of replicas, interned. Raises ReplayError."""
    if not directories:
        return directories
    if len(directories) != len(replicas):
        raise ReplayError(offset, f"{len(replicas)} replicas have {len(directories)} directories")
    interned: tuple[bytes, ...] = intern(directories, directories)
    return interned
