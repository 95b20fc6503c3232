"""Every record of the metadata log: Kafka's by Kafka's names and ids, and ours beside them.

Rule: a record is a fact; a class here is data without behaviour. What a record does to an image
is written once, in `metadata.image`.
"""

from typing import Final

from metadata.records.brokers import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControlledShutdownChange,
    FenceBrokerRecord,
    FencingChange,
    RegisterBrokerRecord,
    SecurityProtocol,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from metadata.records.configs import ConfigRecord, ConfigResourceType
from metadata.records.control import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochVoter,
    KRaftVersionRecord,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
)
from metadata.records.controllers import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    UnregisterControllerRecord,
)
from metadata.records.features import (
    FeatureLevelRecord,
    NoOpRecord,
    ZkMigrationState,
    ZkMigrationStateRecord,
)
from metadata.records.outcomes import RequestOutcomeRecord
from metadata.records.producer_ids import ProducerIdsRecord
from metadata.records.quotas import ClientQuotaRecord, EntityData
from metadata.records.record import VERSIONS_PER_TYPE, Part, Record
from metadata.records.security import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    ScramMechanism,
    UserScramCredentialRecord,
)
from metadata.records.snapshot_only import (
    EpochStartRecord,
    OutcomeFloorRecord,
    ShutdownOffsetRecord,
)
from metadata.records.topics import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    ClearElrRecord,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.records.transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

__all__ = [
    "DIRECTORY_LOST",
    "DIRECTORY_MIGRATING",
    "DIRECTORY_UNASSIGNED",
    "LEADER_RECOVERY_STATE_UNTOUCHED",
    "NO_LEADER",
    "NO_LEADER_CHANGE",
    "RECORD_CLASSES",
    "REGISTRY",
    "SNAPSHOT_ONLY",
    "VERSIONS_PER_TYPE",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "AclOperation",
    "AclPatternType",
    "AclPermissionType",
    "AclResourceType",
    "BeginEpochRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ClusterGenerationRecord",
    "ConfigRecord",
    "ConfigResourceType",
    "ControlledShutdownChange",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EntityData",
    "EpochStartRecord",
    "EpochVoter",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "FencingChange",
    "KRaftVersionRecord",
    "LeaderRecoveryState",
    "NoOpRecord",
    "OutcomeFloorRecord",
    "Part",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "Record",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "RequestOutcomeRecord",
    "ScramMechanism",
    "SecurityProtocol",
    "ShutdownOffsetRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "Voter",
    "VoterEndpoint",
    "VoterKRaftVersions",
    "VotersRecord",
    "ZkMigrationState",
    "ZkMigrationStateRecord",
]

RECORD_CLASSES: Final[tuple[type[Record], ...]] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    RemoveTopicRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
    FeatureLevelRecord,
    ClientQuotaRecord,
    ProducerIdsRecord,
    BrokerRegistrationChangeRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
    RemoveUserScramCredentialRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
    RemoveDelegationTokenRecord,
    RegisterControllerRecord,
    ClearElrRecord,
    UnregisterControllerRecord,
    RequestOutcomeRecord,
    ClusterGenerationRecord,
    EpochStartRecord,
    ShutdownOffsetRecord,
    OutcomeFloorRecord,
    BeginEpochRecord,
    KRaftVersionRecord,
    VotersRecord,
)
"""Every record class, by type id and version."""

REGISTRY: Final[dict[tuple[int, int], type[Record]]] = {
    (cls.TYPE_ID, cls.VERSION): cls for cls in RECORD_CLASSES
}
"""The class for a type id and version."""

SNAPSHOT_ONLY: Final[tuple[type[Record], ...]] = (
    EpochStartRecord,
    ShutdownOffsetRecord,
    OutcomeFloorRecord,
)
"""What stands in snapshots only; in a log it is refused."""
