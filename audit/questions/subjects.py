"""Subjects: what a record is about, in words that people type and filters match.

Rule: the first word is the narrowest and is the column `resource` of `audit.tables.LOG`; wider ones
follow (`partition:orders-3`, then `topic:orders`), so that a filter for a topic finds what happened
to its partitions, configs and literal ACLs. Topics are called by the name that they had then.

| word | records |
|---|---|
| `topic:NAME` | topics; ClearElr (`topic:*` where it is all of them) |
| `partition:NAME-NUMBER` | partitions |
| `broker:ID`, `controller:ID` | registrations; also configs of a broker, blocks of producer ids |
| `config:KIND:NAME:KEY` | configs; KIND is topic, broker, broker-logger, client-metrics, group |
| `acl:ID`, `user:NAME`, `token:ID` | ACLs, SCRAM credentials, delegation tokens |
| `quota:TYPE=NAME,…` | client quotas; `<default>` for the default of a type |
| `feature:NAME` | feature levels; `kraft.version` and `zookeeper-migration`, too |
| `producer-ids` | blocks of producer ids |
| `quorum` | voters, epochs and generations of the cluster |
| `request:ID` | outcomes of requests |
| `transaction` | Begin, End and Abort |
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from audit.questions.names import Names
from metadata.image.client_quotas import entity_key
from metadata.messages.records_json import record_to_json
from metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    AclPatternType,
    AclResourceType,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    RequestOutcomeRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)
from metadata.uuids import uuid_text


class Place(NamedTuple):
    """The columns of `audit.tables.LOG` that say where a record belongs; None: nowhere."""

    topic_id: str | None = None
    topic_name: str | None = None
    partition: int | None = None
    broker_id: int | None = None


def subjects(record: Record, names: Names) -> tuple[str, ...]:
    """Return the words of a record, the narrowest first; none for NoOp.

    `names` has learned the records before it, and this one.
    """
    words = _WORDS.get(type(record))
    return () if words is None else words(record, names)


def resource(record: Record, names: Names) -> str | None:
    """Return the first word."""
    words = subjects(record, names)
    return words[0] if words else None


def place(record: Record, names: Names) -> Place:
    """Return where a record belongs. A topic's config and ClearElr name it without an id."""
    match record:
        case TopicRecord() | RemoveTopicRecord():
            return Place(uuid_text(record.topic_id), names.topic(record.topic_id))
        case PartitionRecord() | PartitionChangeRecord():
            topic_id = record.topic_id
            return Place(uuid_text(topic_id), names.topic(topic_id), record.partition_id)
        case ConfigRecord(resource_type=ConfigResourceType.TOPIC):
            return Place(topic_name=record.resource_name)
        case ClearElrRecord() if record.topic_name:
            return Place(topic_name=record.topic_name)
        case FenceBrokerRecord() | UnfenceBrokerRecord():
            return Place(broker_id=record.id)
        case (
            RegisterBrokerRecord()
            | UnregisterBrokerRecord()
            | BrokerRegistrationChangeRecord()
            | ProducerIdsRecord()
        ):
            return Place(broker_id=record.broker_id)
    return Place()


def fields_text(record: Record, *, show_secrets: bool = False) -> str:
    """Return the column `fields`: the record's `data` (docs/format/records.md) as compact JSON."""
    data = record_to_json(record, show_secrets=show_secrets)["data"]
    return msgspec.json.encode(data).decode()


def config_kind(resource_type: int) -> str:
    """Return what a config's word calls a type of resource; its number if it has no name."""
    return _CONFIG_KINDS.get(resource_type) or str(resource_type)


def quota_word(record: ClientQuotaRecord) -> str:
    """Return the word of a quota's entity, its parts sorted by type."""
    parts = entity_key(record.entity)
    return "quota:" + ",".join(f"{kind}={n[0] if n else '<default>'}" for kind, n in parts)


_CONFIG_KINDS: Final[dict[int, str]] = {
    ConfigResourceType.TOPIC: "topic",
    ConfigResourceType.BROKER: "broker",
    ConfigResourceType.BROKER_LOGGER: "broker-logger",
    ConfigResourceType.CLIENT_METRICS: "client-metrics",
    ConfigResourceType.GROUP: "group",
}


def _topic(record: TopicRecord | RemoveTopicRecord, names: Names) -> tuple[str, ...]:
    return (f"topic:{names.shown(record.topic_id)}",)


def _partition(record: PartitionRecord | PartitionChangeRecord, names: Names) -> tuple[str, ...]:
    name = names.shown(record.topic_id)
    return (f"partition:{name}-{record.partition_id}", f"topic:{name}")


def _clear_elr(record: ClearElrRecord, _names: Names) -> tuple[str, ...]:
    return (f"topic:{record.topic_name or '*'}",)


def _broker(
    record: RegisterBrokerRecord | UnregisterBrokerRecord | BrokerRegistrationChangeRecord,
    _names: Names,
) -> tuple[str, ...]:
    return (f"broker:{record.broker_id}",)


def _fencing(record: FenceBrokerRecord | UnfenceBrokerRecord, _names: Names) -> tuple[str, ...]:
    return (f"broker:{record.id}",)


def _controller(
    record: RegisterControllerRecord | UnregisterControllerRecord, _names: Names
) -> tuple[str, ...]:
    return (f"controller:{record.controller_id}",)


def _config(record: ConfigRecord, _names: Names) -> tuple[str, ...]:
    kind, name = config_kind(record.resource_type), record.resource_name
    word = f"config:{kind}:{name}:{record.name}"
    return (word, f"{kind}:{name}") if name else (word,)


def _acl(record: AccessControlEntryRecord, _names: Names) -> tuple[str, ...]:
    return (f"acl:{uuid_text(record.id)}", *_acl_about(record))


def _acl_removed(record: RemoveAccessControlEntryRecord, names: Names) -> tuple[str, ...]:
    entry = names.acls.get(record.id)
    return (f"acl:{uuid_text(record.id)}", *(() if entry is None else _acl_about(entry)))


def _acl_about(entry: AccessControlEntryRecord) -> tuple[str, ...]:
    words = []
    literal = entry.pattern_type == AclPatternType.LITERAL
    if entry.resource_type == AclResourceType.TOPIC and literal:
        words.append(f"topic:{entry.resource_name}")
    return (*words, *_user(entry.principal))


def _user(principal: str) -> tuple[str, ...]:
    kind, _, name = principal.partition(":")
    return (f"user:{name}",) if kind == "User" else ()


def _scram(
    record: UserScramCredentialRecord | RemoveUserScramCredentialRecord, _names: Names
) -> tuple[str, ...]:
    return (f"user:{record.name}",)


def _token(record: DelegationTokenRecord, _names: Names) -> tuple[str, ...]:
    return (f"token:{record.token_id}", *_user(record.owner))


def _token_removed(record: RemoveDelegationTokenRecord, names: Names) -> tuple[str, ...]:
    return (f"token:{record.token_id}", *_user(names.token_owners.get(record.token_id, "")))


def _quota(record: ClientQuotaRecord, _names: Names) -> tuple[str, ...]:
    users = (
        f"user:{part.entity_name}"
        for part in record.entity
        if part.entity_type == "user" and part.entity_name is not None
    )
    return (quota_word(record), *users)


def _feature(record: FeatureLevelRecord, _names: Names) -> tuple[str, ...]:
    return (f"feature:{record.name}",)


def _producer_ids(record: ProducerIdsRecord, _names: Names) -> tuple[str, ...]:
    return ("producer-ids", f"broker:{record.broker_id}")


def _outcome(record: RequestOutcomeRecord, _names: Names) -> tuple[str, ...]:
    return (f"request:{uuid_text(record.key)}",)


def _always(*words: str) -> Callable[[Any, Names], tuple[str, ...]]:
    return lambda _record, _names: words


_WORDS: Final[dict[type[Record], Callable[[Any, Names], tuple[str, ...]]]] = {
    TopicRecord: _topic,
    RemoveTopicRecord: _topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition,
    ClearElrRecord: _clear_elr,
    RegisterBrokerRecord: _broker,
    UnregisterBrokerRecord: _broker,
    BrokerRegistrationChangeRecord: _broker,
    FenceBrokerRecord: _fencing,
    UnfenceBrokerRecord: _fencing,
    RegisterControllerRecord: _controller,
    UnregisterControllerRecord: _controller,
    ConfigRecord: _config,
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _acl_removed,
    UserScramCredentialRecord: _scram,
    RemoveUserScramCredentialRecord: _scram,
    DelegationTokenRecord: _token,
    RemoveDelegationTokenRecord: _token_removed,
    ClientQuotaRecord: _quota,
    FeatureLevelRecord: _feature,
    KRaftVersionRecord: _always("feature:kraft.version"),
    ZkMigrationStateRecord: _always("feature:zookeeper-migration"),
    ProducerIdsRecord: _producer_ids,
    VotersRecord: _always("quorum"),
    BeginEpochRecord: _always("quorum"),
    ClusterGenerationRecord: _always("quorum"),
    RequestOutcomeRecord: _outcome,
    BeginTransactionRecord: _always("transaction"),
    EndTransactionRecord: _always("transaction"),
    AbortTransactionRecord: _always("transaction"),
}
"""NoOp is about nothing; records of snapshots don't stand in a log."""
