"""Things whose history can be told, and which records a thing's state is made of.

Rule: a thing *takes* the records that its state follows from, and no others; replaying only these
gives the same entries as replaying all. It is *about* those that name it: the others (a topic's
creation, for one of its configs) only show where they change something. What a record's class
says that it is about (`Record.subjects`) decides; written here are the things whose records do not
say all: what else they take, and which of their records do not count.

A topic's name may have had several lives; its id is learned as it comes.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from audit.questions.names import Names
from audit.questions.search import SearchError
from metadata.features import LOGBERG_VERSION
from metadata.records import (
    RECORD_CLASSES,
    AccessControlEntryRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import UuidError, parse_uuid, uuid_text

NOT: Final = 0
TAKES: Final = 1
ABOUT: Final = 2

EXPECTED: Final = (
    "topic:orders, partition:orders-3, broker:2, controller:1, config:topic:orders:retention.ms, "
    "acl:ID, user:alice, token:ID, quota:user=alice, feature:metadata.version, quorum"
)

Test = Callable[[Any], int]


class Told(NamedTuple):
    """How a kind of thing judges records."""

    word: str
    """The subject by which records name the thing."""
    tests: Mapping[type[Record], Test] = MappingProxyType({})
    """Of the records for which another rule holds than whether the word is among their subjects."""


class Thing:
    """One thing, and how it judges records; for one pass over a log."""

    def __init__(self, word: str, told: Told, other_tables: tuple[str, ...]) -> None:
        """`other_tables`: those of the image that its records touch and that don't tell it."""
        self.word = word
        self.other_tables = other_tables
        self._subject = told.word
        self._names = Names()
        kind = told.word.partition(":")[0]
        named = (record for record in RECORD_CLASSES if kind in record.SUBJECT_KINDS)
        self._tests: dict[type[Record], Test] = {
            **dict.fromkeys(named, self._named),
            **told.tests,
        }

    def judge(self, record: Record) -> int:
        """Return NOT, TAKES or ABOUT. Each record that counts, in order, once."""
        test = self._tests.get(type(record))
        return NOT if test is None else test(record)

    def _named(self, record: Record) -> int:
        self._names.learn(record)
        return ABOUT * (self._subject in record.subjects(self._names))


def thing(text: str) -> Thing:
    """Read what people type. Raises SearchError."""
    kind, _, name = text.partition(":")
    if kind not in _KNOWN or (not name and kind != "quorum"):
        raise SearchError(f"{text!r} is no thing whose history is known; such are: {EXPECTED}.")
    make = _KINDS.get(kind)
    return Thing(text, Told(text) if make is None else make(name), _OTHER_TABLES.get(kind, ()))


class _Lifetimes:
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


def _never(_record: Record) -> int:
    return NOT


def _topic(name: str) -> Told:
    lifetimes = _Lifetimes(name)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.topic_id in lifetimes)

    return Told(
        f"topic:{name}",
        {
            **lifetimes.tests(ABOUT),
            PartitionRecord: mine,
            PartitionChangeRecord: mine,
            ClearElrRecord: lifetimes.cleared,
            # Who may do what with a topic is told of the ACL and of the user.
            AccessControlEntryRecord: _never,
            RemoveAccessControlEntryRecord: _never,
        },
    )


def _partition(text: str) -> Told:
    name, hyphen, number = text.rpartition("-")
    if not hyphen or not (number.isascii() and number.isdecimal()):
        raise SearchError(f"partition:{text} names no number: partition:orders-3 is meant.")
    lifetimes, partition_id = _Lifetimes(name), int(number)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.partition_id == partition_id and record.topic_id in lifetimes)

    return Told(
        f"partition:{text}",
        {
            **lifetimes.tests(TAKES),
            PartitionRecord: mine,
            PartitionChangeRecord: mine,
            ClearElrRecord: lifetimes.cleared,
        },
    )


def _config(text: str) -> Told:
    kind, _, rest = text.partition(":")
    name, colon, key = rest.rpartition(":")
    if not colon or not key:
        raise SearchError(
            f"config:{text} names no key: config:topic:orders:retention.ms is meant, or "
            "config:broker::min.insync.replicas for the default of all brokers."
        )
    return Told(f"config:{text}", _Lifetimes(name).tests(TAKES) if kind == "topic" else {})


def _broker(text: str) -> Told:
    # What an amended registration means depends on this level (ADR 0015).
    return Told(
        f"broker:{_number('broker', text)}",
        {FeatureLevelRecord: lambda record: TAKES * (record.name == LOGBERG_VERSION)},
    )


def _controller(text: str) -> Told:
    return Told(f"controller:{_number('controller', text)}")


def _number(kind: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise SearchError(f"{kind}:{text} names no number: {kind}:2 is meant.")
    return int(text)


def _acl(text: str) -> Told:
    try:
        return Told(f"acl:{uuid_text(parse_uuid(text))}")
    except UuidError as error:
        raise SearchError(f"acl:{text}: {error}.") from None


def _user(name: str) -> Told:
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

    return Told(
        f"user:{name}",
        {
            # What was once the user's stays in the user's history.
            AccessControlEntryRecord: acl,
            RemoveAccessControlEntryRecord: lambda record: ABOUT * (record.id in acls),
            DelegationTokenRecord: token,
            RemoveDelegationTokenRecord: lambda record: ABOUT * (record.token_id in tokens),
        },
    )


def _quota(text: str) -> Told:
    wanted = sorted(text.split(","))

    def mine(record: ClientQuotaRecord) -> int:
        return ABOUT * (sorted(record.entity_word.removeprefix("quota:").split(",")) == wanted)

    return Told(f"quota:{text}", {ClientQuotaRecord: mine})


def _quorum(_name: str) -> Told:
    return Told("quorum", {KRaftVersionRecord: lambda _record: ABOUT})


_KINDS: Final[dict[str, Callable[[str], Told]]] = {
    "topic": _topic,
    "partition": _partition,
    "config": _config,
    "broker": _broker,
    "controller": _controller,
    "acl": _acl,
    "user": _user,
    "quota": _quota,
    "quorum": _quorum,
}
"""How the name of a thing is read, and its own rules; a kind that is not here has none."""

_WITHOUT_HISTORY: Final = frozenset(
    ("producer-ids", "request", "transaction", "broker-logger", "client-metrics", "group")
)
_KNOWN: Final = (
    frozenset(kind for record in RECORD_CLASSES for kind in record.SUBJECT_KINDS) - _WITHOUT_HISTORY
)

_OTHER_TABLES: Final = {"partition": ("topics",), "config": ("topics",), "broker": ("features",)}
