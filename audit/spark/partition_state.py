"""What is known of partitions between two micro-batches, as it is carried.

Rule: a fold changes these values in place, and they are written as they are, as MessagePack. So
nothing is converted when a micro-batch begins or ends.
"""

from typing import Final

import msgspec

from audit.spark.arrow_values import Ids
from audit.spark.days import OFFLINE, PRESENT, UNDER_MIN_ISR, DaySums, day_text
from metadata.records import NO_LEADER

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
