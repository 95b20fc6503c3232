"""The families of an image: which maps hold state, which records they are, who replays what.

Rule: this is the one place that names them all. A table is a map whose every entry is told by
records; the order of the tables is the order of a snapshot, such that each record can be replayed
after those before it. A family's delta has an `Overlay` under the name of each of its tables.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from metadata.buckets import PartitionKey
from metadata.image.acls import AclsDelta
from metadata.image.client_quotas import ClientQuotasDelta, quota_records
from metadata.image.cluster import (
    NOT_SHUTTING_DOWN,
    BrokerRegistration,
    ClusterDelta,
    broker_record,
)
from metadata.image.configs import ConfigsDelta, config_records
from metadata.image.features import FeaturesDelta, feature_records
from metadata.image.outcomes import OutcomesDelta, floor_records
from metadata.image.producer_ids import ProducerIdsDelta
from metadata.image.quorum import QuorumDelta, epoch_records
from metadata.image.scram import ScramDelta
from metadata.image.tokens import TokensDelta
from metadata.image.topics import Partition, partition_record
from metadata.image.topics_delta import TopicsDelta
from metadata.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EpochStartRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    KRaftVersionRecord,
    OutcomeFloorRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    RequestOutcomeRecord,
    ShutdownOffsetRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)


class Table(NamedTuple):
    """A map of an image that is told by records."""

    name: str
    """How changes and differences call it."""
    family: str
    """The image's attribute."""
    map: str
    """The attribute of the family's image, and of its delta."""
    records: Callable[[Any, Any], tuple[Record, ...]]
    """From a key and its value to the records that restore it."""
    controllers_only: bool = False


def _broker_records(broker_id: int, broker: BrokerRegistration) -> tuple[Record, ...]:
    if broker.controlled_shutdown_offset == NOT_SHUTTING_DOWN:
        return (broker_record(broker),)
    return (
        broker_record(broker),
        ShutdownOffsetRecord(broker_id, broker.controlled_shutdown_offset),
    )


def _itself(_key: object, record: Record) -> tuple[Record, ...]:
    """The value is the record."""
    return (record,)


def _partition_records(key: PartitionKey, partition: Partition) -> tuple[Record, ...]:
    return (partition_record(key, partition),)


TABLES: Final = (
    Table("features", "features", "levels", feature_records),
    Table("migrations", "features", "migrations", _itself),
    Table("quorum", "quorum", "facts", _itself),
    Table("epochs", "quorum", "epochs", epoch_records),
    Table("brokers", "cluster", "brokers", _broker_records),
    Table("controllers", "cluster", "controllers", _itself),
    Table("topics", "topics", "by_id", _itself),
    Table("partitions", "topics", "partitions", _partition_records),
    Table("configs", "configs", "resources", config_records),
    Table("client_quotas", "client_quotas", "entities", quota_records),
    Table("producer_ids", "producer_ids", "blocks", _itself),
    Table("acls", "acls", "entries", _itself),
    Table("scram", "scram", "credentials", _itself),
    Table("tokens", "tokens", "tokens", _itself),
    Table("floors", "outcomes", "floors", floor_records, controllers_only=True),
    Table("outcomes", "outcomes", "by_key", _itself, controllers_only=True),
)

TABLES_OF: Final = {
    family: tuple(table for table in TABLES if table.family == family)
    for family in dict.fromkeys(table.family for table in TABLES)
}

DELTAS: Final[dict[str, Callable[..., Any]]] = {
    "features": FeaturesDelta,
    "quorum": QuorumDelta,
    "cluster": ClusterDelta,
    "topics": TopicsDelta,
    "configs": ConfigsDelta,
    "client_quotas": ClientQuotasDelta,
    "producer_ids": ProducerIdsDelta,
    "acls": AclsDelta,
    "scram": ScramDelta,
    "tokens": TokensDelta,
    "outcomes": OutcomesDelta,
}

REPLAY: Final[dict[type[Record], tuple[str, str]]] = {
    FeatureLevelRecord: ("features", "set_level"),
    ZkMigrationStateRecord: ("features", "set_migration_state"),
    VotersRecord: ("quorum", "note"),
    KRaftVersionRecord: ("quorum", "note"),
    ClusterGenerationRecord: ("quorum", "note"),
    EpochStartRecord: ("quorum", "restore_epoch"),
    RegisterBrokerRecord: ("cluster", "register_broker"),
    UnregisterBrokerRecord: ("cluster", "unregister_broker"),
    FenceBrokerRecord: ("cluster", "fence_broker"),
    UnfenceBrokerRecord: ("cluster", "unfence_broker"),
    BrokerRegistrationChangeRecord: ("cluster", "change_broker"),
    ShutdownOffsetRecord: ("cluster", "restore_shutdown_offset"),
    RegisterControllerRecord: ("cluster", "register_controller"),
    UnregisterControllerRecord: ("cluster", "unregister_controller"),
    TopicRecord: ("topics", "create_topic"),
    PartitionRecord: ("topics", "set_partition"),
    PartitionChangeRecord: ("topics", "change_partition"),
    ClearElrRecord: ("topics", "clear_elr"),
    ConfigRecord: ("configs", "set_config"),
    ClientQuotaRecord: ("client_quotas", "set_quota"),
    ProducerIdsRecord: ("producer_ids", "hand_out"),
    AccessControlEntryRecord: ("acls", "add_entry"),
    RemoveAccessControlEntryRecord: ("acls", "remove_entry"),
    UserScramCredentialRecord: ("scram", "set_credential"),
    RemoveUserScramCredentialRecord: ("scram", "remove_credential"),
    DelegationTokenRecord: ("tokens", "set_token"),
    RemoveDelegationTokenRecord: ("tokens", "remove_token"),
    RequestOutcomeRecord: ("outcomes", "note"),
    OutcomeFloorRecord: ("outcomes", "restore_floor"),
}
"""For each record that concerns one family: the family, and the method of its delta. The others
(RemoveTopic, Config, BeginEpoch, transactions, NoOp) are in `delta.py`."""
