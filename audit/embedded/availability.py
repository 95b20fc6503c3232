"""The job `availability`: by day, how long partitions and brokers were available and unavailable.

Rule: the job sums the intervals of partitions and brokers, cut at midnight, as they come. It does
not keep them.
"""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from audit.embedded.broker_intervals import FENCED, BrokerInterval, BrokerTracker
from audit.embedded.days import DAY_MS, by_day, day
from audit.embedded.partition_intervals import PartitionInterval, PartitionTracker
from audit.reading.feed import Feed, Question

Row = tuple[Any, ...]

PARTITION: Final = "partition"
BROKER: Final = "broker"
_PRESENT, _OFFLINE, _UNDER, _FENCED, _CHANGES = range(5)
_WIDTH: Final = 5
_COLUMNS: Final = {
    (False, False): (_PRESENT,),
    (True, False): (_PRESENT, _OFFLINE),
    (False, True): (_PRESENT, _UNDER),
    (True, True): (_PRESENT, _OFFLINE, _UNDER),
}
"""Key: (offline, under min ISR). Value: the columns to which an interval's length is added."""


def availability(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.AVAILABILITY`."""
    return availability_since(Feed(question), 0)


def availability_since(feed: Feed, since_ms: int) -> list[Row]:
    """Return the same rows, counted from a time on. Raises NoLogError, LedgerError."""
    partitions, brokers, sums = PartitionTracker(), BrokerTracker(), DailySums(since_ms)
    for turn in feed.turns():
        sums.add_partitions(partitions.step(*turn))
        sums.add_brokers(brokers.step(*turn))
    sums.horizon_ms = feed.horizon_ms
    sums.add_partitions(partitions.still_open())
    sums.add_brokers(brokers.still_open())
    return sums.rows()


class DailySums:
    """The sums so far. The intervals of one partition must come in order."""

    def __init__(self, since_ms: int = 0) -> None:
        self.horizon_ms = 0
        """Intervals without an end are counted up to this time."""
        self._since_ms = since_ms
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._brokers: dict[int, _Days] = {}

    def add_partitions(self, intervals: Iterable[PartitionInterval]) -> None:
        """Add intervals of partitions."""
        for one in intervals:
            key = (one.topic_id, one.partition)
            known = self._partitions.get(key)
            if known is None:
                known = self._partitions[key] = _Partition(one)
            self._add(known.days, one, _COLUMNS[one.offline, one.under_min_isr])
            if known.leader != one.leader:
                known.leader = one.leader
                if one.from_ms >= self._since_ms:
                    known.days[one.from_ms // DAY_MS][_CHANGES] += 1

    def add_brokers(self, intervals: Iterable[BrokerInterval]) -> None:
        """Add intervals of brokers."""
        for one in intervals:
            days = self._brokers.setdefault(one.broker_id, {})
            columns = (_PRESENT, _FENCED) if one.state == FENCED else (_PRESENT,)
            self._add(days, one, columns)

    def _add(
        self, days: "_Days", one: PartitionInterval | BrokerInterval, columns: tuple[int, ...]
    ) -> None:
        """Add the length of an interval to columns, day by day."""
        end_ms = self.horizon_ms if one.until_ms is None else one.until_ms
        begin_ms = one.from_ms
        if begin_ms < self._since_ms:
            begin_ms = self._since_ms
            if end_ms <= begin_ms:
                return
        for number, length in by_day(begin_ms, end_ms):
            sums = days.get(number)
            if sums is None:
                sums = days[number] = [0] * _WIDTH
            for column in columns:
                sums[column] += length

    def rows(self) -> list[Row]:
        """Return the rows, ordered."""
        brokers = [(str(broker_id), days) for broker_id, days in self._brokers.items()]
        partitions = [(known.key, known.days) for known in self._partitions.values()]
        return [
            (kind, key, day(number), *sums)
            for kind, things in ((BROKER, brokers), (PARTITION, partitions))
            for key, days in sorted(things, key=itemgetter(0))
            for number, sums in sorted(days.items())
        ]


_Days = dict[int, list[int]]
"""Sums by the number of the day."""


class _Partition:
    """A partition's sums, and the leader of its newest interval."""

    __slots__ = ("days", "key", "leader")

    def __init__(self, first: PartitionInterval) -> None:
        self.days: _Days = {}
        self.key = f"{first.topic_name}-{first.partition}@{first.topic_id}"
        self.leader = first.leader
