"""Which of our records Kafka has, and in which version Kafka's log holds them.

Rule: the finalised metadata.version decides, as the log itself states it before the record. A
record that Kafka does not have becomes a NoOpRecord at the same offset (ADR 0037, 0071).
"""

from typing import Final

from metadata.features import LOGBERG_VERSION
from metadata.records import (
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)

_OURS_FROM: Final = 1000
"""Type ids from here on are ours, or stand for Kafka's control records."""
_VERSIONS: Final[dict[type[Record], tuple[tuple[int, int], ...]]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (0, 1)),
    PartitionRecord: ((23, 2), (17, 1), (0, 0)),
    PartitionChangeRecord: ((23, 2), (17, 1), (0, 0)),
    BrokerRegistrationChangeRecord: ((30, 3), (17, 2), (0, 1)),
}
"""(from this level of metadata.version on, version of the record), newest first. Source: Kafka's
MetadataVersion."""
CONTROL_TYPES: Final[dict[type[Record], int]] = {
    BeginEpochRecord: 2,
    KRaftVersionRecord: 5,
    VotersRecord: 6,
}
"""Kafka's control type, by our record's class (KIP-595, 630, 853)."""


def is_shown(record: Record) -> bool:
    """Return whether Kafka's log has this record as a data record.

    ZkMigrationStateRecord is known to older releases of Kafka only.
    """
    if isinstance(record, FeatureLevelRecord) and record.name == LOGBERG_VERSION:
        return False
    return record.TYPE_ID < _OURS_FROM and not isinstance(record, ZkMigrationStateRecord)


def version_at(kind: type[Record], level: int) -> int:
    """Return the version in which a log at this level of metadata.version holds a record."""
    versions = _VERSIONS.get(kind, ((0, kind.VERSION),))
    return next((version for since, version in versions if level >= since), versions[-1][1])
