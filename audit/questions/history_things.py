"""The things whose history can be asked for, and the records that determine a thing's state.

Rule: a thing *takes* the records that its state follows from, and no others. Replaying only these
gives the same entries as replaying all. It is *about* the records that name it. Its other records,
such as the topic's creation for one of its configs, are shown only if they change something. A
record's class declares what the record is about (`Record.subjects`). This module adds the rules for
things for which that is not enough.

A topic name may belong to several topics, one after another. Their ids are learned from the log.
A person may be in the log under a pseudonym, and under the name from before that: both are one
thing.
"""

import re
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
    EndSessionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    SessionRecord,
    TopicRecord,
)
from metadata.uuids import UuidError, parse_uuid, uuid_text

NOT: Final = 0
TAKES: Final = 1
ABOUT: Final = 2

EXPECTED: Final = (
    "topic:orders, partition:orders-3, broker:2, controller:1, config:topic:orders:retention.ms, "
    "acl:ID, user:alice, token:ID, quota:user=alice, feature:metadata.version, quorum, "
    "lock:nightly, election:reports, group:workers, session:ID, key:reports/mode"
)

Test = Callable[[Any], int]


class ThingRule(NamedTuple):
    """The rules by which a kind of thing judges records."""

    word: str
    """The subject with which records name the thing."""
    tests: Mapping[type[Record], Test] = MappingProxyType({})
    """For records with another rule than whether the word is among their subjects."""
    also: tuple[str, ...] = ()
    """Patterns of further subjects, so that a search finds every record that the thing takes."""


class Thing:
    """One thing. It judges the records of one pass over a log."""

    def __init__(
        self,
        word: str,
        rule: ThingRule,
        other_tables: tuple[str, ...],
        other: "Thing | None" = None,
    ) -> None:
        """`other_tables`: those of the image that its records touch and that don't tell it.

        `other`: the same thing by another name, if it has one. It judges the records, too.
        """
        self.word = word
        self._other = other
        self.other_tables = other_tables
        more: tuple[str, ...] = () if other is None else other.resources
        self.resources: tuple[str, ...] = (_literally(rule.word), *rule.also, *more)
        """Patterns of subjects. Every record that the thing takes has one that matches."""
        self._subject = rule.word
        self._names = Names()
        kind = rule.word.partition(":")[0]
        named = (record for record in RECORD_CLASSES if kind in record.SUBJECT_KINDS)
        self._tests: dict[type[Record], Test] = {
            **dict.fromkeys(named, self._named),
            **rule.tests,
        }

    def judge(self, record: Record) -> int:
        """Return NOT, TAKES or ABOUT. The caller passes each record that counts once, in order."""
        test = self._tests.get(type(record))
        weight = NOT if test is None else test(record)
        return weight if self._other is None else max(weight, self._other.judge(record))

    def _named(self, record: Record) -> int:
        self._names.learn(record)
        return ABOUT * (self._subject in record.subjects(self._names))


def thing(text: str, other_name: str | None = None) -> Thing:
    """Read the name of a thing as people type it. Raises SearchError.

    `other_name`: what else the same thing is called, such as a person's pseudonym.
    """
    kind, _, name = text.partition(":")
    if kind not in _KNOWN or (not name and kind != "quorum"):
        raise SearchError(f"{text!r} names nothing that has a history. Use such as {EXPECTED}.")
    make = _KINDS.get(kind)
    rule = ThingRule(text) if make is None else make(name)
    other = None if other_name is None else thing(other_name)
    return Thing(text, rule, _OTHER_TABLES.get(kind, ()), other)


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


def _literally(word: str) -> str:
    """Return the pattern that matches just this word."""
    return re.sub(r"([*?[])", r"[\1]", word)


_EVERY_TOPIC: Final = _literally("topic:*")
"""The subject of a ClearElrRecord without a name."""


def _never(_record: Record) -> int:
    return NOT


def _topic(name: str) -> ThingRule:
    lifetimes = _Lifetimes(name)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.topic_id in lifetimes)

    return ThingRule(
        f"topic:{name}",
        {
            **lifetimes.tests(ABOUT),
            PartitionRecord: mine,
            PartitionChangeRecord: mine,
            ClearElrRecord: lifetimes.cleared,
            # ACLs of a topic belong to the history of the ACL and of the user.
            AccessControlEntryRecord: _never,
            RemoveAccessControlEntryRecord: _never,
        },
        (_EVERY_TOPIC,),
    )


def _partition(text: str) -> ThingRule:
    name, hyphen, number = text.rpartition("-")
    if not hyphen or not (number.isascii() and number.isdecimal()):
        raise SearchError(f"partition:{text} has no number. Write such as partition:orders-3.")
    lifetimes, partition_id = _Lifetimes(name), int(number)

    def mine(record: PartitionRecord | PartitionChangeRecord) -> int:
        return ABOUT * (record.partition_id == partition_id and record.topic_id in lifetimes)

    return ThingRule(
        f"partition:{text}",
        {
            **lifetimes.tests(TAKES),
            PartitionRecord: mine,
            PartitionChangeRecord: mine,
            ClearElrRecord: lifetimes.cleared,
        },
        (_literally(f"topic:{name}"), _EVERY_TOPIC),
    )


def _config(text: str) -> ThingRule:
    kind, _, rest = text.partition(":")
    name, colon, key = rest.rpartition(":")
    if not colon or not key:
        raise SearchError(
            f"config:{text} has no key. Write such as config:topic:orders:retention.ms, or "
            "config:broker::min.insync.replicas for the default of all brokers."
        )
    if kind != "topic":
        return ThingRule(f"config:{text}")
    topic = _literally(f"topic:{name}")
    return ThingRule(f"config:{text}", _Lifetimes(name).tests(TAKES), (topic,))


def _broker(text: str) -> ThingRule:
    # This level determines what a repeated registration means (ADR 0015).
    return ThingRule(
        f"broker:{_number('broker', text)}",
        {FeatureLevelRecord: lambda record: TAKES * (record.name == LOGBERG_VERSION)},
        (f"feature:{LOGBERG_VERSION}",),
    )


def _controller(text: str) -> ThingRule:
    return ThingRule(f"controller:{_number('controller', text)}")


def _number(kind: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise SearchError(f"{kind}:{text} has no number. Write such as {kind}:2.")
    return int(text)


def _acl(text: str) -> ThingRule:
    try:
        return ThingRule(f"acl:{uuid_text(parse_uuid(text))}")
    except UuidError as error:
        raise SearchError(f"acl:{text}: {error}.") from None


def _user(name: str) -> ThingRule:
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

    return ThingRule(
        f"user:{name}",
        {
            # An ACL or token that once was the user's stays in the user's history.
            AccessControlEntryRecord: acl,
            RemoveAccessControlEntryRecord: lambda record: ABOUT * (record.id in acls),
            DelegationTokenRecord: token,
            RemoveDelegationTokenRecord: lambda record: ABOUT * (record.token_id in tokens),
        },
        ("acl:*", "token:*"),
    )


def _quota(text: str) -> ThingRule:
    wanted = sorted(text.split(","))

    def mine(record: ClientQuotaRecord) -> int:
        return ABOUT * (sorted(record.entity_word.removeprefix("quota:").split(",")) == wanted)

    return ThingRule(f"quota:{text}", {ClientQuotaRecord: mine}, ("quota:*",))


def _queue(word: str) -> ThingRule:
    # An entry is replayed only if its session is there.
    return ThingRule(word, {SessionRecord: _always, EndSessionRecord: _always}, ("session:*",))


def _always(_record: Record) -> int:
    return TAKES


_KINDS: Final[dict[str, Callable[[str], ThingRule]]] = {
    "topic": _topic,
    "partition": _partition,
    "config": _config,
    "broker": _broker,
    "controller": _controller,
    "acl": _acl,
    "user": _user,
    "quota": _quota,
    "election": lambda name: _queue(f"election:{name}"),
    "group": lambda name: _queue(f"group:{name}"),
    "lock": lambda name: _queue(f"lock:{name}"),
}
"""Reads the name of a thing and returns its own rules. A kind that is not here has none."""

_WITHOUT_HISTORY: Final = frozenset(
    (
        *("producer-ids", "request", "transaction", "broker-logger", "client-metrics"),
        *("token-base", "attempt", "tried", "by", "from"),
    )
)
_KNOWN: Final = (
    frozenset(kind for record in RECORD_CLASSES for kind in record.SUBJECT_KINDS) - _WITHOUT_HISTORY
)

_OTHER_TABLES: Final = {
    "partition": ("topics",),
    "config": ("topics",),
    "broker": ("features",),
} | dict.fromkeys(("election", "group", "lock"), ("sessions",))
