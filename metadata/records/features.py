"""Records about feature levels, the migration from ZooKeeper, and the record that does nothing."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames, Privileged
from metadata.records.record import Codes, Record
from metadata.types import Int8, Int16


class ZkMigrationState(IntEnum):
    """Codes of `ZkMigrationStateRecord.zk_migration_state` (KIP-866)."""

    NONE = 0
    MIGRATION = 1
    """Kafka 3.4 wrote 1 for PRE_MIGRATION; 3.5 swapped the two."""
    PRE_MIGRATION = 2
    POST_MIGRATION = 3


class FeatureLevelRecord(Record, frozen=True, tag=1200):
    """Finalises a level of a feature, such as metadata.version (KIP-584, 778)."""

    TYPE_ID: ClassVar[int] = 12
    VERSION: ClassVar[int] = 0
    PRIVILEGED: ClassVar[Privileged | None] = Privileged("feature")
    COLUMNS: ClassVar[Columns] = {"name": "name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("feature",)

    name: str
    feature_level: Int16
    """0: the feature is removed."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"feature:{self.name}",)


class NoOpRecord(Record, frozen=True, tag=2000):
    """Changes nothing but the log's end (KIP-835).

    Ours says by its batch who asked that another voter lead, and why.
    """

    TYPE_ID: ClassVar[int] = 20
    VERSION: ClassVar[int] = 0
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("quorum",)


class ZkMigrationStateRecord(Record, frozen=True, tag=2100):
    """The state of a migration from ZooKeeper (KIP-866); known so that Kafka's logs can be read."""

    TYPE_ID: ClassVar[int] = 21
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"zk_migration_state": ZkMigrationState}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("feature",)

    zk_migration_state: Int8
    """A `ZkMigrationState`."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return ("feature:zookeeper-migration",)
