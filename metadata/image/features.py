"""The finalised feature levels, and the state of a migration from ZooKeeper.

Rule: a feature at level 0 is removed from the map (KIP-584, 778). Replay stops at a level that this
build does not know, because the records after it may follow other rules.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_text
from metadata.features import unknown_level
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    FeatureLevelRecord,
    Record,
    ZkMigrationState,
    ZkMigrationStateRecord,
)

_ZK = "zookeeper"


class FeaturesImage(msgspec.Struct, frozen=True):
    """The finalised level of each feature, such as metadata.version."""

    levels: BucketMap[str, int]
    migrations: BucketMap[str, ZkMigrationStateRecord]

    @property
    def zk_migration_state(self) -> ZkMigrationState:
        """The state of the migration; NONE if there never was one."""
        record = self.migrations.get(_ZK)
        return ZkMigrationState(0 if record is None else record.zk_migration_state)


EMPTY_FEATURES = FeaturesImage(BucketMap(mix_text), BucketMap(mix_text))


def feature_records(name: str, level: int) -> tuple[Record, ...]:
    """Return the record that restores a level."""
    return (FeatureLevelRecord(name, level),)


class FeaturesDelta:
    """Replays feature levels and the state of a migration."""

    def __init__(self, image: FeaturesImage) -> None:
        self.levels = Overlay(image.levels)
        self.migrations = Overlay(image.migrations)

    def apply_in_steps(self) -> Generator[None, None, FeaturesImage]:
        return FeaturesImage(
            (yield from self.levels.apply_in_steps()), (yield from self.migrations.apply_in_steps())
        )

    @replays(FeatureLevelRecord)
    def set_level(self, record: FeatureLevelRecord, offset: int) -> None:
        if record.feature_level < 0:
            raise ReplayError(
                offset, f"feature {record.name!r} has the negative level {record.feature_level}"
            )
        unknown = unknown_level(record.name, record.feature_level)
        if unknown:
            raise ReplayError(offset, unknown)
        if record.feature_level:
            self.levels.set(record.name, record.feature_level)
        else:
            self.levels.remove(record.name)

    @replays(ZkMigrationStateRecord)
    def set_migration_state(self, record: ZkMigrationStateRecord, offset: int) -> None:
        if record.zk_migration_state not in list(ZkMigrationState):
            raise ReplayError(offset, f"there is no migration state {record.zk_migration_state}")
        if record.zk_migration_state == ZkMigrationState.NONE:
            self.migrations.remove(_ZK)
        else:
            self.migrations.set(_ZK, record)


TABLES: Final = (
    ImageTable("features", "features", "levels", feature_records, "feature", ("name",)),
    ImageTable("migrations", "features", "migrations", itself, "migration"),
)
