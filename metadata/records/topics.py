"""Records about topics and partitions (KIP-516, 455, 704, 858, 966)."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.record import Record
from metadata.types import BrokerId, Int8, Int32, Uuid

NO_LEADER = -1
"""A partition's leader when it has none."""
NO_LEADER_CHANGE = -2
"""`PartitionChangeRecord.leader` when the leader and its epoch stay as they are."""
LEADER_RECOVERY_STATE_UNTOUCHED = -1

DIRECTORY_MIGRATING = bytes(16)
"""A replica whose directory isn't known yet: it comes from before directories had ids."""
DIRECTORY_UNASSIGNED = bytes(15) + b"\x01"
"""A replica for which its broker has yet to choose a directory."""
DIRECTORY_LOST = bytes(15) + b"\x02"
"""A replica whose directory its broker has lost."""


class LeaderRecoveryState(IntEnum):
    """Codes of `leader_recovery_state` (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class TopicRecord(Record, frozen=True, tag=200):
    """A topic's name is bound to a uuid (KIP-516)."""

    TYPE_ID: ClassVar[int] = 2
    VERSION: ClassVar[int] = 0

    name: str
    topic_id: Uuid


class PartitionRecord(Record, frozen=True, tag=302):
    """The whole state of one partition, at creation and in snapshots (KIP-631, 858, 966)."""

    TYPE_ID: ClassVar[int] = 3
    VERSION: ClassVar[int] = 2

    partition_id: Int32
    topic_id: Uuid
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: Int32
    partition_epoch: Int32
    leader_recovery_state: Int8 = 0
    """A `LeaderRecoveryState`."""
    directories: tuple[Uuid, ...] = ()
    """One for each replica, in the order of `replicas`; empty: not tracked."""
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None


class PartitionChangeRecord(Record, frozen=True, tag=502):
    """What changes in one partition; None is untouched, an empty list is cleared.

    Replay raises the partition epoch by one, and the leader epoch too if `leader` isn't
    `NO_LEADER_CHANGE` (KIP-631, 455, 704, 858, 966).
    """

    TYPE_ID: ClassVar[int] = 5
    VERSION: ClassVar[int] = 2

    partition_id: Int32
    topic_id: Uuid
    isr: tuple[BrokerId, ...] | None = None
    leader: BrokerId = NO_LEADER_CHANGE
    replicas: tuple[BrokerId, ...] | None = None
    removing_replicas: tuple[BrokerId, ...] | None = None
    adding_replicas: tuple[BrokerId, ...] | None = None
    leader_recovery_state: Int8 = LEADER_RECOVERY_STATE_UNTOUCHED
    """A `LeaderRecoveryState`, or -1: untouched."""
    directories: tuple[Uuid, ...] | None = None
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None


class RemoveTopicRecord(Record, frozen=True, tag=900):
    """A topic is deleted, and with it its partitions and configs (KIP-516)."""

    TYPE_ID: ClassVar[int] = 9
    VERSION: ClassVar[int] = 0

    topic_id: Uuid


class ClearElrRecord(Record, frozen=True, tag=2800):
    """ELR and last known ELR of one topic, or of every topic, are emptied (KIP-966)."""

    TYPE_ID: ClassVar[int] = 28
    VERSION: ClassVar[int] = 0

    topic_name: str
    """Empty: every topic."""
