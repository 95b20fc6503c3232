"""What the folds carry from one micro-batch to the next: of partitions, brokers and the cluster.

Rule: a fold changes these values in place, and they are written as they are, as MessagePack. So
nothing is converted when a micro-batch begins or ends.

Sums by day: an interval counts on each day from that of its first millisecond to that of its last;
an empty one counts on its first day. Time never falls in the log. So a day is over once the log has
reached a later one, and only the newest day's sums are carried on.
"""

import datetime as dt
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from audit.spark.folds.arrow_values import Ids
from metadata.records import NO_LEADER

DAY_MS: Final = 86_400_000
_EPOCH: Final = dt.date(1970, 1, 1)
_LAST_DAY: Final = (dt.date.max - _EPOCH).days

PRESENT, OFFLINE, UNDER_MIN_ISR, FENCED, LEADER_CHANGES = range(5)
"""The places of the sums, in the order of audit.tables.AVAILABILITY."""
Sums = list[int]


@lru_cache(maxsize=4_096)
def day_text(number: int) -> str:
    """Return the date of a day by its number since 1970; years end with 9999."""
    return (_EPOCH + dt.timedelta(days=min(number, _LAST_DAY))).isoformat()


def by_day(from_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """Yield each day that a span touches, and the span's milliseconds on it."""
    first = from_ms // DAY_MS
    last = max((until_ms - 1) // DAY_MS, first)
    for number in range(first, last + 1):
        begins = number * DAY_MS
        yield number, min(until_ms, begins + DAY_MS) - max(from_ms, begins)


class DaySums(msgspec.Struct, array_like=True):
    """The sums of one thing by day, and up to where its present interval is in them."""

    counted_ms: int
    days: dict[int, Sums] = {}

    def begin(self, from_ms: int) -> None:
        """Begin an interval."""
        self.counted_ms = from_ms

    def add(self, from_ms: int, until_ms: int, places: tuple[int, ...]) -> None:
        """Count the interval that began at `from_ms` up to a time, in the sums at `places`."""
        since = self.counted_ms
        if until_ms <= since and since != from_ms:
            return
        for number, length in by_day(since, until_ms):
            sums = self._of(number)
            for place in places:
                sums[place] += length
        self.counted_ms = until_ms

    def change_leader(self, time_ms: int) -> None:
        """Count a change of leader."""
        self._of(time_ms // DAY_MS)[LEADER_CHANGES] += 1

    def take_before(self, day: int) -> list[tuple[int, Sums]]:
        """Remove and return the days before this one: they are over."""
        over = [number for number in self.days if number < day]
        return [(number, self.days.pop(number)) for number in over]

    def shown(
        self, day: int, horizon_ms: int, from_ms: int | None, places: tuple[int, ...]
    ) -> Sums | None:
        """Return a day's sums with the interval since `from_ms` up to the horizon, if it has any.

        `from_ms`: None if no interval lasts.
        """
        sums = self.days.get(day)
        if from_ms is None or (horizon_ms <= self.counted_ms and self.counted_ms != from_ms):
            return None if sums is None else list(sums)
        shown = [0] * 5 if sums is None else list(sums)
        for place in places:
            shown[place] += horizon_ms - self.counted_ms
        return shown

    def _of(self, number: int) -> Sums:
        sums = self.days.get(number)
        if sums is None:
            sums = self.days[number] = [0] * 5
        return sums


State = tuple[int, Ids, Ids, int]
"""(leader, ISR, replicas, min ISR)"""

_PLACES: Final = {
    (False, False): (PRESENT,),
    (True, False): (PRESENT, OFFLINE),
    (False, True): (PRESENT, UNDER_MIN_ISR),
    (True, True): (PRESENT, OFFLINE, UNDER_MIN_ISR),
}
"""By (offline, under min ISR): the sums to which an interval's length is added."""


class PartitionNow(msgspec.Struct, array_like=True, eq=False):
    """A partition: its state now, and since when its interval lasts."""

    leader: int
    isr: Ids
    replicas: Ids
    min_isr: int
    from_offset: int
    from_ms: int
    sums: DaySums

    @property
    def state(self) -> State:
        return self.leader, self.isr, self.replicas, self.min_isr


class TopicNow(msgspec.Struct, array_like=True, eq=False):
    """A topic of this part."""

    topic_id: str
    name: str
    partitions: dict[int, PartitionNow]


class PartitionsCarried(msgspec.Struct):
    """What a part hands to the next micro-batch."""

    part: int
    parts: int
    topics: dict[str, TopicNow] = {}
    """By id: those of this part."""
    names: dict[str, str] = {}
    """By id: the names of all topics."""
    min_isr: dict[str, int] = {}
    """By name of the topic; that of the empty name is the default."""
    removed: list[tuple[str, DaySums]] = []
    """By key: what the newest day holds of topics that were removed on it."""
    waiting: bytes = b""
    """Rows of the open transaction."""


def interval_row(
    topic: TopicNow,
    number: int,
    one: PartitionNow,
    state: State,
    until_offset: int | None,
    until_ms: int | None,
) -> tuple[object, ...]:
    """Return an interval as a row of PARTITION_INTERVALS; `until` None: it has not ended."""
    leader, isr, replicas, min_isr = state
    return (
        topic.topic_id,
        number,
        one.from_offset,
        topic.name,
        until_offset,
        one.from_ms,
        until_ms,
        leader,
        isr,
        replicas,
        min_isr,
        leader == NO_LEADER,
        len(isr) < min_isr,
    )


def sums_places(state: State) -> tuple[int, ...]:
    """Return the sums to which an interval's length is added."""
    leader, isr, _, min_isr = state
    return _PLACES[leader == NO_LEADER, len(isr) < min_isr]


def availability_key(topic: TopicNow, number: int) -> str:
    """Return the key of a partition in AVAILABILITY."""
    return f"{topic.name}-{number}@{topic.topic_id}"


def partition_day_row(key: str, day: int, sums: list[int]) -> tuple[object, ...]:
    """Return a day's sums as a row of AVAILABILITY."""
    return ("partition", key, day_text(day), *sums)


_FENCED: Final = "fenced"


_STOPPING: Final = "stopping"


_ONLINE: Final = "online"


class BrokerNow(msgspec.Struct, array_like=True, eq=False):
    """A broker: what its registration says now, and since when its interval lasts."""

    sums: DaySums
    incarnation: bytes | None = None
    """None: it is not registered."""
    fenced: bool = False
    stopping: bool = False
    shown: str = ""
    """The state of its interval; empty: none lasts."""
    from_offset: int = 0
    from_ms: int = 0

    @property
    def state(self) -> str:
        """Its state now; empty if it is not registered."""
        if self.incarnation is None:
            return ""
        if self.fenced:
            return _FENCED
        return _STOPPING if self.stopping else _ONLINE


class BrokersCarried(msgspec.Struct):
    """What is carried to the next micro-batch."""

    brokers: dict[int, BrokerNow] = {}
    literal: bool = False
    """Registrations count as they stand (ADR 0015)."""


class ClusterCarried(msgspec.Struct):
    """What is carried to the next micro-batch."""

    brokers: BrokersCarried = msgspec.field(default_factory=BrokersCarried)
    names: dict[bytes, str] = {}
    """Names of topics by id."""
    waiting: bytes = b""
    """Records of the open transaction."""
    waiting_counts: bytes = b""
    changes: bytes = b""
    """Rows of CHANGES of the days that may still change."""
