"""One ElectLeaders request, through all its rounds (KIP-460).

A round ends after some changes, and also after some partitions that needed none. What it found is
in the log, with its records. So the request continues behind that round when it is sent again to
the next leader, and gets the answer that it would have got: a partition that an earlier round
elected is told to be elected, although it needs no election any more.

Rule: how far the request is comes from the log (`resume`). A request about all partitions goes
through them in the order of their keys, so that every leader continues at the same place.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import NamedTuple, Protocol

import msgspec

from controller.managers.sweep import in_order
from controller.result import ControllerResult, RoundAnswer
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.key_runs import sorted_keys
from metadata.messages import (
    ElectedPartition,
    ElectedTopic,
    ElectLeadersReply,
    ElectLeadersRequest,
    ErrorReply,
    error_reply,
)
from metadata.messages.parts import LongMessage
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionChangeRecord

SHOWN_MAX = 2_000
"""Partitions in the answer about all partitions."""
_SHORT = 256
"""A longer answer is encoded while it is sent."""
_STEP = 64
Working = Generator[None, None, ControllerResult]
Found = int | str
"""The new leader of a partition, or the error code that says why it has none."""
Name = tuple[str, int]
"""Of a partition: the topic's name, and its number."""
Elect = Callable[[PlainPartitionKey], tuple[Found, PartitionChangeRecord | None]]
"""Judges one partition of an image."""
MakeElect = Callable[[MetadataImage], Elect]
Keys = Callable[[MetadataImage], Iterable[PlainPartitionKey]]
_encode = msgspec.msgpack.Encoder().encode
_NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED.value
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.value


class Limits(NamedTuple):
    """Of one round; None: no limit, as a dry run shows it."""

    changes: int | None
    looks: int | None


class AskedElection(Protocol):
    """The rounds of one request."""

    @property
    def number(self) -> int:
        """How many rounds are in the log."""
        ...

    @property
    def progress(self) -> tuple[int, int]:
        """How many partitions those rounds looked at, of how many."""
        ...

    def resume(self, answer: bytes) -> None:
        """Take over what the next round answered, from the log."""
        ...

    def decide(self, image: MetadataImage) -> Working:
        """Decide about the next round."""
        ...

    def complete(self, reply: ElectLeadersReply) -> ElectLeadersReply | LongMessage:
        """Return the answer of all rounds. `reply` is that of the last one."""
        ...


class NamedElection:
    """A request that names partitions."""

    def __init__(self, request: ElectLeadersRequest, elect: MakeElect, limits: Limits) -> None:
        self._request = request
        self._elect = elect
        self._limits = limits
        self._distinct: list[Name] | None = None
        self._known: list[Found] = []
        """What the rounds in the log found, in the order of the request."""
        self.number = 0

    @property
    def progress(self) -> tuple[int, int]:
        """How many partitions the rounds in the log looked at, of how many."""
        return len(self._known), len(self._distinct or self._known)

    def resume(self, answer: bytes) -> None:
        """Take over what the next round found, from the log."""
        for found, times in _decode_runs(answer):
            self._known += [found] * times
        self.number += 1

    def decide(self, image: MetadataImage) -> Working:
        """Elect as many leaders as one round takes."""
        if self._distinct is None:
            self._distinct = yield from _in_steps(self._names())
        names, start = self._distinct, len(self._known)
        elect = self._elect(image)
        records: list[PartitionChangeRecord] = []
        found: list[Found] = []
        for number, name in enumerate(islice(names, start, None), start=1):
            now, record = _judged(image, name, elect)
            found.append(now)
            if record is not None:
                records.append(record)
            if len(records) == self._limits.changes or number == self._limits.looks:
                break
            if number % _STEP == 0:
                yield
        records = yield from in_order(records)
        if start + len(found) < len(names):
            answer = RoundAnswer(self.number, _encode(_runs(found)))
            return ControllerResult(records, unfinished=True, round_answer=answer)
        rows = ((*name, now) for name, now in zip(islice(names, start, None), found, strict=True))
        reply = yield from _last(rows, dry_run=self._request.dry_run)
        return ControllerResult(records, reply)

    def complete(self, reply: ElectLeadersReply) -> ElectLeadersReply | LongMessage:
        """Return the answer of all rounds, in the order of the request."""
        topics: dict[str, _AskedRows] = {}
        known = iter(self._known)
        for topic in self._request.topic_partitions or ():
            topics.setdefault(topic.topic, _AskedRows()).ask(topic.partitions, known)
        for name, number, now in _rows(reply):
            topics[name].found[number] = now
        counts = _counts(chain.from_iterable(rows.values() for rows in topics.values()))
        return _answer(reply, topics, counts)

    def _names(self) -> Iterator[Name]:
        """Yield each partition once, in the order of the request."""
        seen: set[Name] = set()
        for topic in self._request.topic_partitions or ():
            for number in topic.partitions:
                if (topic.topic, number) not in seen:
                    seen.add((topic.topic, number))
                    yield topic.topic, number


class _AllAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What a round about all partitions found, as the log keeps it."""

    last: PlainPartitionKey
    """The last partition that the round looked at."""
    looks: int
    elected: int
    failed: int
    shown: tuple[tuple[str, int, Found], ...]


_decode_all = msgspec.msgpack.Decoder(_AllAnswer).decode
_decode_runs = msgspec.msgpack.Decoder(tuple[tuple[Found, int], ...]).decode


class ElectionOfAll:
    """A request about all partitions that need an election."""

    def __init__(
        self, request: ElectLeadersRequest, keys: Keys, elect: MakeElect, limits: Limits
    ) -> None:
        """`keys` returns the partitions that need an election, in no order."""
        self._request = request
        self._keys = keys
        self._elect = elect
        self._limits = limits
        self._left: Iterator[PlainPartitionKey] | None = None
        self._rounds: list[_AllAnswer] = []
        self._shown = 0
        self._looks = 0
        self._total = 0

    @property
    def number(self) -> int:
        """How many rounds are in the log."""
        return len(self._rounds)

    @property
    def progress(self) -> tuple[int, int]:
        """How many partitions the rounds in the log looked at, of how many."""
        return self._looks, max(self._total, self._looks)

    def resume(self, answer: bytes) -> None:
        """Take over what the next round found, from the log."""
        self._rounds.append(_decode_all(answer))
        self._shown += len(self._rounds[-1].shown)
        self._looks += self._rounds[-1].looks

    def decide(self, image: MetadataImage) -> Working:
        """Elect as many leaders as one round takes."""
        if self._left is None:
            behind = self._rounds[-1].last if self._rounds else (b"", 0)
            keys = (key if key > behind else None for key in self._keys(image))
            runs = yield from sorted_keys(keys)
            self._total = self._looks + len(runs)
            self._left = runs.in_order()
        elect = self._elect(image)
        records: list[PartitionChangeRecord] = []
        rows: list[tuple[str, int, Found]] = []
        counts = [0, 0]
        number = 0
        for number, key in enumerate(self._left, start=1):
            topic = image.topics.by_id.get(key[0])
            found, record = (_NOT_NEEDED, None) if topic is None else elect(key)
            if topic is not None and found != _NOT_NEEDED:
                counts[isinstance(found, str)] += 1
                if self._shown + len(rows) < SHOWN_MAX:
                    rows.append((topic.name, key[1], found))
            if record is not None:
                records.append(record)
            if len(records) == self._limits.changes or number == self._limits.looks:
                break
            if number % _STEP == 0:
                yield
        else:
            reply = yield from _last(rows, dry_run=self._request.dry_run)
            return ControllerResult(
                records, msgspec.structs.replace(reply, elected=counts[0], failed=counts[1])
            )
        body = _encode(_AllAnswer(key, number, counts[0], counts[1], tuple(rows)))
        return ControllerResult(
            records, unfinished=True, round_answer=RoundAnswer(self.number, body)
        )

    def complete(self, reply: ElectLeadersReply) -> ElectLeadersReply | LongMessage:
        """Return the answer of all rounds, in their order."""
        topics: dict[str, list[Row]] = {}
        for answer in self._rounds:
            for topic, number, found in answer.shown:
                topics.setdefault(topic, []).append((number, found))
        for topic, number, found in _rows(reply):
            topics.setdefault(topic, []).append((number, found))
        elected = reply.elected + sum(answer.elected for answer in self._rounds)
        failed = reply.failed + sum(answer.failed for answer in self._rounds)
        return _answer(reply, topics, (elected, failed))


Row = tuple[int, Found]
"""A partition's number, and what it came to."""


def _judged(
    image: MetadataImage, name: Name, elect: Elect
) -> tuple[Found, PartitionChangeRecord | None]:
    topic = image.topics.named(name[0])
    key = (b"" if topic is None else topic.topic_id, name[1])
    return (_UNKNOWN, None) if image.topics.partitions.get(key) is None else elect(key)


def _in_steps(names: Iterator[Name]) -> Generator[None, None, list[Name]]:
    listed: list[Name] = []
    while some := list(islice(names, _STEP)):
        if listed:
            yield
        listed += some
    return listed


def _runs(found: list[Found]) -> list[tuple[Found, int]]:
    """Return equal ones behind each other as one: most partitions often come to the same."""
    return [(value, sum(1 for _ in equal)) for value, equal in groupby(found)]


def _counts(found: Iterable[Found]) -> tuple[int, int]:
    """Return how many were elected, and how many were not."""
    kinds = Counter(map(type, found))
    return kinds[int], kinds.total() - kinds[int]


def _last(
    rows: Iterable[tuple[str, int, Found]], *, dry_run: bool
) -> Generator[None, None, ElectLeadersReply]:
    """Return what the last outcome remembers: the results of the last round.

    A dry run has only one round, so these may be as many as a request can name.
    """
    topics: dict[str, list[ElectedPartition]] = {}
    counts, errors = [0, 0], dict[str, ErrorReply]()
    for count, (name, number, found) in enumerate(rows, start=1):
        counts[isinstance(found, str)] += 1
        topics.setdefault(name, []).append(_shown(number, found, errors))
        if count % _STEP == 0:
            yield
    entries: list[ElectedTopic] = []
    for count, (name, shown) in enumerate(topics.items(), start=1):
        entries.append(ElectedTopic(name, tuple(shown)))
        if count % _STEP == 0:
            yield
    elected, failed = counts
    return ElectLeadersReply(tuple(entries), elected, failed, dry_run=dry_run)


def _rows(reply: ElectLeadersReply) -> Iterator[tuple[str, int, Found]]:
    for topic in reply.replica_election_results:
        for row in topic.partition_result:
            found = row.leader_id if row.error is None else row.error.code
            yield topic.topic, row.partition_id, found


class _AskedRows:
    """The results of one topic, in the order of the request, which may name a partition twice."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self.found: dict[int, Found] = {}
        """By the partition's number."""

    def ask(self, numbers: Iterable[int], known: Iterator[Found]) -> None:
        """Add partitions. `known` gives the next results of the rounds in the log, to its end."""
        found = self.found
        self._numbers += numbers
        for number in numbers:
            if number not in found:
                now = next(known, None)
                if now is None:
                    break
                found[number] = now

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Row]:
        return zip(self._numbers, self.values(), strict=True)

    def values(self) -> Iterator[Found]:
        """Yield what the rows came to."""
        return map(self.found.__getitem__, self._numbers)


Rows = list[Row] | _AskedRows
"""The results of one topic."""


def _answer(
    reply: ElectLeadersReply, topics: Mapping[str, Rows], counts: tuple[int, int]
) -> ElectLeadersReply | LongMessage:
    entries = _Topics(topics)
    head = msgspec.structs.replace(
        reply, replica_election_results=(), elected=counts[0], failed=counts[1]
    )
    if sum(map(len, topics.values())) > _SHORT:
        return LongMessage(head, "replicaElectionResults", entries, len(topics))
    shown = tuple(ElectedTopic(name, tuple(_all_shown(rows))) for name, rows in topics.items())
    return msgspec.structs.replace(head, replica_election_results=shown)


class _Topics:
    """The results by topic. They are made while they are sent, perhaps to several callers."""

    def __init__(self, topics: Mapping[str, Rows]) -> None:
        self._topics = topics

    def __iter__(self) -> Iterator[LongMessage]:
        for name, rows in self._topics.items():
            shown = _all_shown(rows)
            yield LongMessage(ElectedTopic(name, ()), "partitionResult", shown, len(rows))


def _all_shown(rows: Iterable[Row]) -> Iterator[ElectedPartition]:
    errors: dict[str, ErrorReply] = {}
    return (_shown(number, found, errors) for number, found in rows)


def _shown(number: int, found: Found, errors: dict[str, ErrorReply]) -> ElectedPartition:
    """Return the result of a partition. `errors` keeps each error, by its code."""
    if isinstance(found, int):
        return ElectedPartition(number, found)
    if found not in errors:
        errors[found] = error_reply(LogbergError(ErrorCode(found)))
    return ElectedPartition(number, error=errors[found])
