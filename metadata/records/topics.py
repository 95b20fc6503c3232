"""Records about topics and partitions (KIP-516, 455, 704, 858, 966)."""

from enum import IntEnum
from typing import ClassVar, Final

from metadata.records.declaring import (
    UNCLEAN_LEADER,
    Columns,
    KnownNames,
    Need,
    Privileged,
    metadata_level,
)
from metadata.records.record import Codes, Record
from metadata.types import BrokerId, Int8, Int32, Uuid

NO_LEADER = -1
"""The leader of a partition that has none."""
NO_LEADER_CHANGE = -2
"""`PartitionChangeRecord.leader` if the leader and the leader epoch don't change."""
LEADER_RECOVERY_STATE_UNTOUCHED = -1

DIRECTORY_MIGRATING = bytes(16)
"""The directory of a replica from before directories had ids; it isn't known yet (KIP-858)."""
DIRECTORY_UNASSIGNED = bytes(15) + b"\x01"
"""The directory of a replica for which the broker has not chosen one yet (KIP-858)."""
DIRECTORY_LOST = bytes(15) + b"\x02"
"""The directory of a replica whose broker has lost it (KIP-858)."""


class LeaderRecoveryState(IntEnum):
    """Codes of `leader_recovery_state` (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


_ELR_FIELDS: Final = ("eligible_leader_replicas", "last_known_elr")


class TopicRecord(Record, frozen=True, tag=200):
    """Creates a topic: a name and its uuid (KIP-516)."""

    TYPE_ID: ClassVar[int] = 2
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"topic_id": "topic_id", "topic_name": "name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("topic",)

    name: str
    topic_id: Uuid

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"topic:{names.shown(self.topic_id)}",)


class PartitionRecord(Record, frozen=True, tag=302):
    """Sets all fields of a partition, at its creation or in a snapshot (KIP-631, 858, 966)."""

    TYPE_ID: ClassVar[int] = 3
    VERSION: ClassVar[int] = 2
    CODES: ClassVar[Codes] = {"leader_recovery_state": LeaderRecoveryState}
    NEEDS: ClassVar[tuple[Need, ...]] = (
        *metadata_level(17, "directories", default=()),
        *metadata_level(23, *_ELR_FIELDS),
    )
    PRIVILEGED: ClassVar[Privileged | None] = UNCLEAN_LEADER
    COLUMNS: ClassVar[Columns] = {
        "topic_id": "topic_id",
        "partition": "partition_id",
        "leader": "leader",
        "leader_recovery_state": "leader_recovery_state",
        "isr": "isr",
        "replicas": "replicas",
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("partition", "topic")

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
    """The directory of each replica, in the order of `replicas`; empty: not known."""
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        name = names.shown(self.topic_id)
        return (f"partition:{name}-{self.partition_id}", f"topic:{name}")


class PartitionChangeRecord(Record, frozen=True, tag=502):
    """Changes one partition; None leaves a field as it is, and an empty list clears it.

    Replay raises the partition epoch by one, and the leader epoch too if `leader` isn't
    `NO_LEADER_CHANGE` (KIP-631, 455, 704, 858, 966).
    """

    TYPE_ID: ClassVar[int] = 5
    VERSION: ClassVar[int] = 2
    CODES: ClassVar[Codes] = {"leader_recovery_state": LeaderRecoveryState}
    NEEDS: ClassVar[tuple[Need, ...]] = (
        *metadata_level(17, "directories"),
        *metadata_level(23, *_ELR_FIELDS),
    )
    PRIVILEGED: ClassVar[Privileged | None] = UNCLEAN_LEADER
    COLUMNS: ClassVar[Columns] = {
        "topic_id": "topic_id",
        "partition": "partition_id",
        "leader": lambda record: None if record.leader == NO_LEADER_CHANGE else record.leader,
        "leader_recovery_state": lambda record: (
            None
            if record.leader_recovery_state == LEADER_RECOVERY_STATE_UNTOUCHED
            else record.leader_recovery_state
        ),
        "isr": "isr",
        "replicas": "replicas",
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("partition", "topic")

    partition_id: Int32
    topic_id: Uuid
    isr: tuple[BrokerId, ...] | None = None
    leader: BrokerId = NO_LEADER_CHANGE
    replicas: tuple[BrokerId, ...] | None = None
    removing_replicas: tuple[BrokerId, ...] | None = None
    adding_replicas: tuple[BrokerId, ...] | None = None
    leader_recovery_state: Int8 = LEADER_RECOVERY_STATE_UNTOUCHED
    """A `LeaderRecoveryState`, or -1: unchanged."""
    directories: tuple[Uuid, ...] | None = None
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        name = names.shown(self.topic_id)
        return (f"partition:{name}-{self.partition_id}", f"topic:{name}")


class RemoveTopicRecord(Record, frozen=True, tag=900):
    """Deletes a topic with its partitions and configs (KIP-516)."""

    TYPE_ID: ClassVar[int] = 9
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"topic_id": "topic_id"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("topic",)

    topic_id: Uuid

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"topic:{names.shown(self.topic_id)}",)


class ClearElrRecord(Record, frozen=True, tag=2800):
    """Clears ELR and last known ELR of one topic, or of every topic (KIP-966)."""

    TYPE_ID: ClassVar[int] = 28
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(23)
    COLUMNS: ClassVar[Columns] = {"topic_name": "topic_name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("topic",)

    topic_name: str
    """Empty: every topic."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"topic:{self.topic_name or '*'}",)
