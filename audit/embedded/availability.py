"""The job `availability`: by day, how long partitions and brokers were available and unavailable.

Rule: the job sums the intervals of partitions and brokers, cut at midnight, as they come. It does
not keep them. What it keeps of a day that is over is 20 bytes a partition, and the rows are made
one by one. So a log of ten million records needs some hundred megabytes.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

from audit.embedded.broker_intervals import FENCED, BrokerInterval, BrokerTracker
from audit.embedded.days import DAY_MS, by_day, day
from audit.embedded.partition_intervals import PartitionInterval, PartitionTracker
from audit.reading.feed import Feed, Question

Row = tuple[Any, ...]

PARTITION: Final = "partition"
BROKER: Final = "broker"
_PRESENT, _OFFLINE, _UNDER, _CHANGES = range(4)
_FENCED: Final = _OFFLINE
"""A broker has no time offline, and a partition none fenced: they share a place."""
_WIDTH: Final = 4
_UNSIGNED_32: Final = "I"
"""A day has fewer milliseconds than that."""
_COLUMNS: Final = {
    (False, False): (_PRESENT,),
    (True, False): (_PRESENT, _OFFLINE),
    (False, True): (_PRESENT, _UNDER),
    (True, True): (_PRESENT, _OFFLINE, _UNDER),
}
"""Key: (offline, under min ISR). Value: the columns to which an interval's length is added."""
_OF_BROKERS: Final = {True: (_PRESENT, _FENCED), False: (_PRESENT,)}
"""Key: whether the broker is fenced."""


def availability(question: Question) -> Iterator[Row]:
    """Yield the rows of `audit.tables.AVAILABILITY`."""
    return availability_since(Feed(question), 0)


def availability_since(feed: Feed, since_ms: int) -> Iterator[Row]:
    """Yield the same rows, counted from a time on. Raises NoLogError, LedgerError."""
    partitions, brokers, sums = PartitionTracker(), BrokerTracker(), DailySums(since_ms)
    for turn in feed.turns():
        sums.add_partitions(partitions.step(*turn))
        sums.add_brokers(brokers.step(*turn))
    sums.horizon_ms = feed.horizon_ms
    sums.add_partitions(partitions.still_open())
    sums.add_brokers(brokers.still_open())
    yield from sums.rows()


class _Days:
    """The sums of one thing, day after day. Once a later day began, a day never changes."""

    __slots__ = ("_day", "_past", "_sums")

    def __init__(self) -> None:
        self._day = -1
        self._sums = [0] * _WIDTH
        self._past = array(_UNSIGNED_32)
        """For each day that is over: its number since 1970, then its sums."""

    def of(self, number: int) -> list[int]:
        """Return the sums of a day, to add to. The days must come in order."""
        if number != self._day:
            if self._day >= 0:
                self._past.extend((self._day, *self._sums))
            self._day = number
            self._sums = [0] * _WIDTH
        return self._sums

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield the number of each day and its sums."""
        past = iter(self._past)
        yield from zip(*[past] * (1 + _WIDTH), strict=True)
        if self._day >= 0:
            yield (self._day, *self._sums)


class _PartitionDays(_Days):
    """The sums of a partition, and the leader of its newest interval."""

    __slots__ = ("leader", "topic_name")

    def __init__(self, first: PartitionInterval) -> None:
        super().__init__()
        self.topic_name = first.topic_name
        self.leader = first.leader


class DailySums:
    """The sums so far. The intervals of one thing must come in order."""

    def __init__(self, since_ms: int = 0) -> None:
        self.horizon_ms = 0
        """Intervals without an end are counted up to this time."""
        self._since_ms = since_ms
        self._partitions: dict[tuple[str, int], _PartitionDays] = {}
        self._brokers: dict[int, _Days] = {}

    def add_partitions(self, intervals: Iterable[PartitionInterval]) -> None:
        """Add intervals of partitions."""
        for one in intervals:
            key = (one.topic_id, one.partition)
            days = self._partitions.get(key)
            if days is None:
                days = self._partitions[key] = _PartitionDays(one)
            elif days.leader != one.leader:
                days.leader = one.leader
                if one.from_ms >= self._since_ms:
                    days.of(one.from_ms // DAY_MS)[_CHANGES] += 1
            self._add(days.of, one, _COLUMNS[one.offline, one.under_min_isr])

    def add_brokers(self, intervals: Iterable[BrokerInterval]) -> None:
        """Add intervals of brokers."""
        for one in intervals:
            days = self._brokers.get(one.broker_id)
            if days is None:
                days = self._brokers[one.broker_id] = _Days()
            self._add(days.of, one, _OF_BROKERS[one.state == FENCED])

    def _add(
        self,
        sums_of: Callable[[int], list[int]],
        one: PartitionInterval | BrokerInterval,
        columns: tuple[int, ...],
    ) -> None:
        """Add the length of an interval to columns, day by day."""
        end_ms = self.horizon_ms if one.until_ms is None else one.until_ms
        begin_ms = one.from_ms
        if begin_ms < self._since_ms:
            begin_ms = self._since_ms
            if end_ms <= begin_ms:
                return
        for number, length in by_day(begin_ms, end_ms):
            sums = sums_of(number)
            for column in columns:
                sums[column] += length

    def rows(self) -> Iterator[Row]:
        """Yield the rows, ordered."""
        brokers = [(str(broker_id), days) for broker_id, days in self._brokers.items()]
        for key, broker in sorted(brokers, key=itemgetter(0)):
            for number, present, fenced, _, _ in broker.rows():
                yield (BROKER, key, day(number), present, 0, 0, fenced, 0)
        partitions = [
            (f"{days.topic_name}-{number}@{topic_id}", days)
            for (topic_id, number), days in self._partitions.items()
        ]
        partitions.sort(key=itemgetter(0))
        for key, partition in partitions:
            for number, present, offline, under, changes in partition.rows():
                yield (PARTITION, key, day(number), present, offline, under, 0, changes)
