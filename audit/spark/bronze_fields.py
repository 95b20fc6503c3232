"""Which fields of which records fill which columns of bronze.

Rule: one line a record type; what is not named here is null. Codes for "untouched" are null, and
the flags of a registration stand in the words of a registration change: `fenced` is 1 (fenced) or
-1 (unfenced), `in_controlled_shutdown` 1 or 0. What a record is named by, other than topics,
brokers and config keys, is `name`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from audit.questions.subjects import quota_word
from metadata.messages.secrets import REDACTED, secret_fields
from metadata.records import (
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER_CHANGE,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
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
)
from metadata.uuids import uuid_text

Values = Callable[[Sequence[Record]], Iterable[Any]]
"""From records of one type to one column."""

_text = lru_cache(maxsize=65_536)(uuid_text)


def _field(name: str) -> Values:
    get = attrgetter(name)
    return lambda records: list(map(get, records))


def _uuid(name: str) -> Values:
    get = attrgetter(name)
    return lambda records: [_text(get(record)) for record in records]


def _number_as_text(name: str) -> Values:
    get = attrgetter(name)
    return lambda records: [str(get(record)) for record in records]


def _unless(name: str, untouched: int) -> Values:
    get = attrgetter(name)

    def values(records: Sequence[Record]) -> Iterable[Any]:
        found = map(get, records)
        return [None if value == untouched else value for value in found]

    return values


def _flag(name: str, *, clear: int) -> Values:
    get = attrgetter(name)
    return lambda records: [1 if get(record) else clear for record in records]


def _always(value: int) -> Values:
    return lambda records: [value] * len(records)


def _config_values(records: Sequence[Any]) -> Iterable[str | None]:
    return [REDACTED if secret_fields(record) else record.value for record in records]


def _quota_entities(records: Sequence[Any]) -> Iterable[str]:
    return list(map(quota_word, records))


def _quota_values(records: Sequence[Any]) -> Iterable[str | None]:
    return [None if record.remove else str(record.value) for record in records]


FIELDS: Final[dict[type[Record], dict[str, Values]]] = {
    TopicRecord: {"topic_id": _uuid("topic_id"), "topic_name": _field("name")},
    RemoveTopicRecord: {"topic_id": _uuid("topic_id")},
    ClearElrRecord: {"topic_name": _field("topic_name")},
    PartitionRecord: {
        "topic_id": _uuid("topic_id"),
        "partition": _field("partition_id"),
        "leader": _field("leader"),
        "leader_recovery_state": _field("leader_recovery_state"),
        "isr": _field("isr"),
        "replicas": _field("replicas"),
    },
    PartitionChangeRecord: {
        "topic_id": _uuid("topic_id"),
        "partition": _field("partition_id"),
        "leader": _unless("leader", NO_LEADER_CHANGE),
        "leader_recovery_state": _unless("leader_recovery_state", LEADER_RECOVERY_STATE_UNTOUCHED),
        "isr": _field("isr"),
        "replicas": _field("replicas"),
    },
    RegisterBrokerRecord: {
        "broker_id": _field("broker_id"),
        "broker_epoch": _field("broker_epoch"),
        "fenced": _flag("fenced", clear=-1),
        "in_controlled_shutdown": _flag("in_controlled_shutdown", clear=0),
    },
    BrokerRegistrationChangeRecord: {
        "broker_id": _field("broker_id"),
        "broker_epoch": _field("broker_epoch"),
        "fenced": _field("fenced"),
        "in_controlled_shutdown": _field("in_controlled_shutdown"),
    },
    FenceBrokerRecord: {
        "broker_id": _field("id"),
        "broker_epoch": _field("epoch"),
        "fenced": _always(1),
    },
    UnfenceBrokerRecord: {
        "broker_id": _field("id"),
        "broker_epoch": _field("epoch"),
        "fenced": _always(-1),
    },
    UnregisterBrokerRecord: {
        "broker_id": _field("broker_id"),
        "broker_epoch": _field("broker_epoch"),
    },
    ProducerIdsRecord: {
        "broker_id": _field("broker_id"),
        "broker_epoch": _field("broker_epoch"),
    },
    ConfigRecord: {
        "resource_type": _field("resource_type"),
        "config_key": _field("name"),
        "config_value": _config_values,
        "name": _field("resource_name"),
    },
    ClientQuotaRecord: {
        "config_key": _field("key"),
        "config_value": _quota_values,
        "name": _quota_entities,
    },
    AccessControlEntryRecord: {"resource_type": _field("resource_type"), "name": _uuid("id")},
    RemoveAccessControlEntryRecord: {"name": _uuid("id")},
    UserScramCredentialRecord: {"name": _field("name")},
    RemoveUserScramCredentialRecord: {"name": _field("name")},
    DelegationTokenRecord: {"name": _field("token_id")},
    RemoveDelegationTokenRecord: {"name": _field("token_id")},
    FeatureLevelRecord: {"name": _field("name")},
    BeginTransactionRecord: {"name": _field("name")},
    RequestOutcomeRecord: {"name": _uuid("key")},
    RegisterControllerRecord: {"name": _number_as_text("controller_id")},
    UnregisterControllerRecord: {"name": _number_as_text("controller_id")},
}
