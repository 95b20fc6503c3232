"""Things whose history can be told, and which records a thing's state is made of.

Rule: a thing *takes* the records that its state follows from, and no others; replaying only these
gives the same entries as replaying all. It is *about* those that name it: the others (a topic's
creation, for one of its configs) only show where they change something.

A topic's name may have had several lives; its id is learned as it comes.
"""

from collections.abc import Callable
from typing import Any, Final

from audit.questions.search import SearchError
from audit.questions.subjects import config_kind, quota_word
from metadata.features import LOGBERG_VERSION
from metadata.records import (
    AccessControlEntryRecord,
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ConfigRecord,
    DelegationTokenRecord,
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
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)
from metadata.uuids import UuidError, parse_uuid

NOT: Final = 0
TAKES: Final = 1
ABOUT: Final = 2

EXPECTED: Final = (
    "topic:orders, partition:orders-3, broker:2, controller:1, config:topic:orders:retention.ms, "
    "acl:ID, user:alice, token:ID, quota:user=alice, feature:metadata.version, quorum"
)

Test = Callable[[Any], int]


class Thing:
    """One thing, and how it judges records; for one pass over a log."""

    def __init__(
        self, word: str, tests: dict[type[Record], Test], tables: tuple[str, ...] | None
    ) -> None:
        """`tables`: those of the image that tell it; None: all that its records touch."""
        self.word = word
        self.tables = tables
        self._tests = tests

    def judge(self, record: Record) -> int:
        """Return NOT, TAKES or ABOUT. Each record that counts, in order, once."""
        test = self._tests.get(type(record))
        return NOT if test is None else test(record)


def thing(text: str) -> Thing:
    """Read what people type. Raises SearchError."""
    kind, _, name = text.partition(":")
    make = _KINDS.get(kind)
    if make is None or (not name and kind != "quorum"):
        raise SearchError(f"{text!r} is no thing whose history is known; such are: {EXPECTED}.")
    return Thing(text, make(name), _TABLES.get(kind))


class _Lives:
    """A topic's name, and the id that it has now: a second life begins behind the first's end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._topic_id: bytes | None = None

    def born(self, record: TopicRecord) -> bool:
        if record.name != self._name:
            return False
        self._topic_id = record.topic_id
        return True

    def tests(self, weight: int) -> dict[type[Record], Test]:
        """Take the topic's creation and removal."""
        return {
            TopicRecord: lambda record: weight * self.born(record),
            RemoveTopicRecord: lambda record: weight * (record.topic_id == self._topic_id),
        }

    def cleared(self, record: ClearElrRecord) -> int:
        if record.topic_name == self._name:
            return ABOUT
        return NOT if record.topic_name else TAKES

    def __contains__(self, topic_id: bytes) -> bool:
        return topic_id == self._topic_id


def _topic(name: str) -> dict[type[Record], Test]:
    lives = _Lives(name)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.topic_id in lives)

    return {
        **lives.tests(ABOUT),
        PartitionRecord: mine,
        PartitionChangeRecord: mine,
        ClearElrRecord: lives.cleared,
        ConfigRecord: _is_config("topic", name),
    }


def _partition(text: str) -> dict[type[Record], Test]:
    name, hyphen, number = text.rpartition("-")
    if not hyphen or not (number.isascii() and number.isdecimal()):
        raise SearchError(f"partition:{text} names no number: partition:orders-3 is meant.")
    lives, partition_id = _Lives(name), int(number)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.partition_id == partition_id and record.topic_id in lives)

    return {
        **lives.tests(TAKES),
        PartitionRecord: mine,
        PartitionChangeRecord: mine,
        ClearElrRecord: lives.cleared,
    }


def _config(text: str) -> dict[type[Record], Test]:
    kind, _, rest = text.partition(":")
    name, colon, key = rest.rpartition(":")
    if not colon or not key:
        raise SearchError(
            f"config:{text} names no key: config:topic:orders:retention.ms is meant, or "
            "config:broker::min.insync.replicas for the default of all brokers."
        )
    lives = _Lives(name).tests(TAKES) if kind == "topic" else {}
    return {**lives, ConfigRecord: _is_config(kind, name, key)}


def _is_config(kind: str, name: str, key: str | None = None) -> Test:
    def mine(record: ConfigRecord) -> int:
        fits = record.resource_name == name and config_kind(record.resource_type) == kind
        return ABOUT * (fits and (key is None or record.name == key))

    return mine


def _broker(text: str) -> dict[type[Record], Test]:
    number = _number("broker", text)
    return {
        # What an amended registration means depends on this level (ADR 0015).
        FeatureLevelRecord: lambda record: TAKES * (record.name == LOGBERG_VERSION),
        RegisterBrokerRecord: lambda record: ABOUT * (record.broker_id == number),
        UnregisterBrokerRecord: lambda record: ABOUT * (record.broker_id == number),
        BrokerRegistrationChangeRecord: lambda record: ABOUT * (record.broker_id == number),
        FenceBrokerRecord: lambda record: ABOUT * (record.id == number),
        UnfenceBrokerRecord: lambda record: ABOUT * (record.id == number),
        ConfigRecord: _is_config("broker", text),
        ProducerIdsRecord: lambda record: ABOUT * (record.broker_id == number),
    }


def _controller(text: str) -> dict[type[Record], Test]:
    number = _number("controller", text)
    return {
        RegisterControllerRecord: lambda record: ABOUT * (record.controller_id == number),
        UnregisterControllerRecord: lambda record: ABOUT * (record.controller_id == number),
    }


def _number(kind: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise SearchError(f"{kind}:{text} names no number: {kind}:2 is meant.")
    return int(text)


def _acl(text: str) -> dict[type[Record], Test]:
    try:
        entry = parse_uuid(text)
    except UuidError as error:
        raise SearchError(f"acl:{text}: {error}.") from None
    return {
        AccessControlEntryRecord: lambda record: ABOUT * (record.id == entry),
        RemoveAccessControlEntryRecord: lambda record: ABOUT * (record.id == entry),
    }


def _user(name: str) -> dict[type[Record], Test]:
    acls: set[bytes] = set()
    tokens: set[str] = set()

    def acl(record: AccessControlEntryRecord) -> int:
        if record.principal == f"User:{name}":
            acls.add(record.id)
        return ABOUT * (record.id in acls)

    def token(record: DelegationTokenRecord) -> int:
        if record.owner == f"User:{name}":
            tokens.add(record.token_id)
        return ABOUT * (record.token_id in tokens)

    def quota(record: ClientQuotaRecord) -> int:
        parts = ((part.entity_type, part.entity_name) for part in record.entity)
        return ABOUT * (("user", name) in parts)

    return {
        UserScramCredentialRecord: lambda record: ABOUT * (record.name == name),
        RemoveUserScramCredentialRecord: lambda record: ABOUT * (record.name == name),
        AccessControlEntryRecord: acl,
        RemoveAccessControlEntryRecord: lambda record: ABOUT * (record.id in acls),
        DelegationTokenRecord: token,
        RemoveDelegationTokenRecord: lambda record: ABOUT * (record.token_id in tokens),
        ClientQuotaRecord: quota,
    }


def _token(token_id: str) -> dict[type[Record], Test]:
    return {
        DelegationTokenRecord: lambda record: ABOUT * (record.token_id == token_id),
        RemoveDelegationTokenRecord: lambda record: ABOUT * (record.token_id == token_id),
    }


def _quota(text: str) -> dict[type[Record], Test]:
    wanted = sorted(text.split(","))

    def mine(record: ClientQuotaRecord) -> int:
        return ABOUT * (sorted(quota_word(record).removeprefix("quota:").split(",")) == wanted)

    return {ClientQuotaRecord: mine}


def _feature(name: str) -> dict[type[Record], Test]:
    if name == "kraft.version":
        return {KRaftVersionRecord: lambda _record: ABOUT}
    if name == "zookeeper-migration":
        return {ZkMigrationStateRecord: lambda _record: ABOUT}
    return {FeatureLevelRecord: lambda record: ABOUT * (record.name == name)}


def _quorum(_name: str) -> dict[type[Record], Test]:
    kinds = (VotersRecord, BeginEpochRecord, ClusterGenerationRecord, KRaftVersionRecord)
    return {kind: lambda _record: ABOUT for kind in kinds}


_KINDS: Final[dict[str, Callable[[str], dict[type[Record], Test]]]] = {
    "topic": _topic,
    "partition": _partition,
    "config": _config,
    "broker": _broker,
    "controller": _controller,
    "acl": _acl,
    "user": _user,
    "token": _token,
    "quota": _quota,
    "feature": _feature,
    "quorum": _quorum,
}

_TABLES: Final = {
    "partition": ("partitions",),
    "config": ("configs",),
    "broker": ("brokers", "configs", "producer_ids"),
}
