"""The job `availability`: by day, how long partitions and brokers were there, and how long not.

Rule: sums over the intervals of partitions and brokers, cut at midnights, as those come; they are
not kept.
"""

from collections.abc import Iterable
from typing import Any, Final

from audit.embedded.broker_intervals import FENCED, BrokerInterval, BrokerTracker
from audit.embedded.days import by_day, day_of
from audit.embedded.feed import Feed, Question
from audit.embedded.partition_intervals import PartitionInterval, PartitionTracker

Row = tuple[Any, ...]

PARTITION: Final = "partition"
BROKER: Final = "broker"
_PRESENT, _OFFLINE, _UNDER, _FENCED, _CHANGES = range(5)


def availability(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.AVAILABILITY`."""
    return availability_since(Feed(question), 0)


def availability_since(feed: Feed, since_ms: int) -> list[Row]:
    """Return the same rows of what was from a time on. Raises NoLogError, LedgerError."""
    beginning = feed.beginning()
    partitions, brokers, sums = PartitionTracker(), BrokerTracker(), DailySums(since_ms)
    if beginning.records:
        when = (beginning.fact_offset, beginning.time_ms)
        sums.add_partitions(partitions.step(*when, beginning.records))
        sums.add_brokers(brokers.step(*when, beginning.records))
    for moment in feed.moments(beginning):
        records = [one.record for one in moment.records]
        sums.add_partitions(partitions.step(moment.base, moment.time_ms, records))
        sums.add_brokers(brokers.step(moment.base, moment.time_ms, records))
    sums.horizon_ms = feed.horizon_ms
    sums.add_partitions(partitions.still_open())
    sums.add_brokers(brokers.still_open())
    return sums.rows()


class DailySums:
    """What was summed up so far; intervals of one partition come in their order."""

    def __init__(self, since_ms: int = 0) -> None:
        self.horizon_ms = 0
        """Where intervals without an end are cut."""
        self._since_ms = since_ms
        self._sums: dict[tuple[str, str, str], list[int]] = {}
        self._leaders: dict[str, int] = {}

    def add_partitions(self, intervals: Iterable[PartitionInterval]) -> None:
        """Add intervals of partitions."""
        for one in intervals:
            key = f"{one.topic_name}-{one.partition}@{one.topic_id}"
            for sums, length in self._days(PARTITION, key, one.from_ms, one.until_ms):
                sums[_OFFLINE] += length * one.offline
                sums[_UNDER] += length * one.under_min_isr
            if self._leaders.setdefault(key, one.leader) != one.leader:
                self._leaders[key] = one.leader
                if one.from_ms >= self._since_ms:
                    self._sums[PARTITION, key, day_of(one.from_ms)][_CHANGES] += 1

    def add_brokers(self, intervals: Iterable[BrokerInterval]) -> None:
        """Add intervals of brokers."""
        for one in intervals:
            for sums, length in self._days(BROKER, str(one.broker_id), one.from_ms, one.until_ms):
                sums[_FENCED] += length * (one.state == FENCED)

    def _days(
        self, kind: str, key: str, from_ms: int, until_ms: int | None
    ) -> Iterable[tuple[list[int], int]]:
        """Yield the sums of each day that a span touches, and the span's ms in it."""
        end_ms = self.horizon_ms if until_ms is None else until_ms
        begin_ms = max(from_ms, self._since_ms)
        if begin_ms > from_ms and end_ms <= begin_ms:
            return
        for day, length in by_day(begin_ms, end_ms):
            sums = self._sums.setdefault((kind, key, day), [0] * 5)
            sums[_PRESENT] += length
            yield sums, length

    def rows(self) -> list[Row]:
        """Return the rows, ordered."""
        return [(*key, *sums) for key, sums in sorted(self._sums.items())]
