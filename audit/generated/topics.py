"""Topics' lives: created, configured, grown, moved between brokers, deleted.

Rule: who creates what is settled by the kind of topic: services own most, people try things out
and clean up after themselves, or forget it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from audit.generated.brokers import Brokers
from audit.generated.model import MIN_ISR, Broker, Partition, Topic
from audit.generated.people import (
    CONNECT,
    PEOPLE,
    SPARK_JOBS,
    TOPIC_OPERATOR,
    WHY,
    Actor,
    broker_actor,
)
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, office_hours
from audit.generated.stage import Stage
from metadata.records import (
    DIRECTORY_UNASSIGNED,
    ConfigRecord,
    ConfigResourceType,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
)

_AREAS: Final = (
    "orders",
    "payments",
    "shipments",
    "clicks",
    "sessions",
    "prices",
    "stock",
    "emails",
    "fraud",
    "invoices",
    "devices",
    "audit",
    "search",
    "carts",
)
_STAGES: Final = ("events", "commands", "changelog", "enriched", "raw", "dlq", "daily", "snapshots")
_SMALL: Final = (1, 1, 3, 3, 6, 6, 12)
_LARGE: Final = (3, 6, 6, 12, 12, 24, 48)
_RETENTION: Final = ("86400000", "259200000", "604800000", "2592000000", "-1")
FIRST_TOPICS_MS: Final = 5 * MINUTE_MS
"""After the brokers are there."""


class _Kind(NamedTuple):
    """What is usual for a topic."""

    factor: int
    min_isr: str | None
    passing: bool


_CORE: Final = _Kind(3, "2", passing=False)
_METRICS: Final = _Kind(2, None, passing=False)
_SCRATCH: Final = _Kind(1, None, passing=False)
_PASSING: Final = (_Kind(1, None, passing=True), _Kind(2, None, passing=True))


class Topics:
    """What happens to topics."""

    def __init__(self, stage: Stage, brokers: Brokers, partitions: int) -> None:
        """`partitions`: how many the cluster has, about."""
        self._stage = stage
        self._brokers = brokers
        self._sizes = _SMALL if partitions < 5_000 else _LARGE
        self._target = partitions
        self._named = 0

    # Creation.

    def plan(self, kind: _Kind, size: int) -> tuple[Topic, list[Record]]:
        """Draw a topic; it exists once it is adopted."""
        stage, dice = self._stage, self._stage.dice
        self._named += 1
        base = f"{dice.pick(_AREAS)}.{dice.pick(_STAGES)}"
        prefix = "loadtest." if kind.passing else "scratch." if kind.factor == 1 else ""
        topic = Topic(f"{prefix}{base}.v{self._named}", dice.uuid(), passing=kind.passing)
        start = dice.below(len(stage.cluster.brokers))
        planned = stage.cluster.planned(topic, 0, size, kind.factor, start)
        records: list[Record] = [stage.cluster.created(topic), *planned]
        if kind.min_isr is not None:
            records.append(self._config(topic, MIN_ISR, kind.min_isr))
        if dice.chance(0.3):
            policy = "compact" if base.endswith(("changelog", "snapshots")) else "delete"
            records.append(self._config(topic, "cleanup.policy", policy))
        return topic, records

    def populate(self, topics: int | None) -> None:
        """Create what the cluster is made of, some topics a request, over its first hours."""
        stage, dice = self._stage, self._stage.dice
        made = partitions = 0
        at_ms = FIRST_TOPICS_MS
        gap_ms = 4 * HOUR_MS // (1 + self._target // (4 * self._sizes[-3]))
        while (partitions < self._target) if topics is None else (made < topics):
            batch = []
            for _ in range(dice.between(1, 8)):
                size = dice.pick(self._sizes)
                batch.append((self._usual_kind(), size))
                made, partitions = made + 1, partitions + size
            stage.after(at_ms, partial(self._create, TOPIC_OPERATOR, tuple(batch), "migration"))
            at_ms += dice.around(gap_ms)

    def _usual_kind(self) -> _Kind:
        throw = self._stage.dice.below(100)
        return _SCRATCH if throw < 3 else _METRICS if throw < 15 else _CORE

    def _create(self, actor: Actor, wanted: Sequence[tuple[_Kind, int]], reason: str) -> None:
        stage = self._stage
        records: list[Record] = []
        for kind, size in wanted:
            topic, planned = self.plan(kind, size)
            records += planned
            stage.cluster.adopt(topic)
        stage.answer(actor, "CreateTopics", records, reason)

    def create(self) -> None:
        """Somebody creates a topic or some; what is for trying out goes again."""
        dice = self._stage.dice
        if dice.chance(0.6) and len(self._stage.cluster.partitions) < 11 * self._target // 10:
            sizes = [
                (self._usual_kind(), dice.pick(self._sizes)) for _ in range(dice.between(1, 3))
            ]
            self._create(self.somebody(), sizes, dice.pick(WHY["CreateTopics"]))
            return
        sizes = [(dice.pick(_PASSING), dice.pick(self._sizes)) for _ in range(dice.between(1, 4))]
        self._create(self.somebody(), sizes, "load test, remove me")
        self._stage.after(dice.around(12 * HOUR_MS), self.delete)

    def delete(self) -> None:
        """Somebody deletes topics of those that pass."""
        stage, dice = self._stage, self._stage.dice
        doomed = [
            topic
            for topic in dice.some(stage.cluster.passing, dice.between(1, 4))
            if not any(partition.moving for partition in topic.partitions)
        ]
        if doomed:
            records = [stage.cluster.remove(topic) for topic in doomed]
            reason = dice.pick(WHY["DeleteTopics"])
            stage.answer(self.somebody(), "DeleteTopics", records, reason)

    def grow(self) -> None:
        """A topic gets more partitions."""
        stage, dice = self._stage, self._stage.dice
        topic = self.some_partition().topic
        if len(stage.cluster.partitions) > 12 * self._target // 10:
            return
        first = len(topic.partitions)
        factor = len(topic.partitions[0].replicas)
        records = stage.cluster.planned(topic, first, dice.between(1, 3), factor, dice.below(64))
        stage.cluster.adopt(topic, first)
        reason = dice.pick(WHY["CreatePartitions"])
        stage.answer(self.somebody(), "CreatePartitions", records, reason)

    def plan_usual(self) -> tuple[Topic, list[Record]]:
        """Draw a topic of a usual kind and size; it exists once it is adopted."""
        return self.plan(self._usual_kind(), self._stage.dice.pick(self._sizes))

    def pair(self, brokers: tuple[Broker, Broker]) -> tuple[Topic, list[Record]]:
        """Draw a topic of one partition on two brokers, the first of which leads."""
        self._named += 1
        topic = Topic(f"telemetry.edge.v{self._named}", self._stage.dice.uuid())
        replicas = tuple(broker.id for broker in brokers)
        directories = tuple(broker.directory for broker in brokers)
        partition = Partition(topic, 0, replicas, directories)
        topic.partitions.append(partition)
        return topic, [self._stage.cluster.created(topic), partition.record()]

    # What never happens: for transactions that are not ended.

    def imagined_moves(self, count: int) -> list[Record]:
        """Return a reassignment of some partitions, and do nothing."""
        dice = self._stage.dice
        records: list[Record] = []
        for partition in dice.some(self._stage.cluster.partitions.items, count):
            old, directories = partition.replicas, partition.directories
            others = [b.id for b in self._brokers.free() if b.id not in old]
            if partition.moving:
                continue
            change = PartitionChangeRecord(
                partition.number,
                partition.topic.id,
                replicas=old[::-1],
                directories=directories[::-1],
            )
            if others:
                target = dice.pick(others)
                change = PartitionChangeRecord(
                    partition.number,
                    partition.topic.id,
                    replicas=(*old, target),
                    removing_replicas=old[:1],
                    adding_replicas=(target,),
                    directories=(*directories, DIRECTORY_UNASSIGNED),
                )
            records.append(change)
        return records

    def imagined_deletions(self, count: int) -> list[Record]:
        """Return the deletion of some topics, and do nothing."""
        topics = self._stage.dice.some(list(self._stage.cluster.topics.values()), count)
        return [RemoveTopicRecord(topic.id) for topic in topics]

    # Configs.

    def configure(self) -> None:
        """Somebody changes a topic's configs."""
        dice = self._stage.dice
        topic = self.some_partition().topic
        key = dice.pick(("retention.ms", "retention.ms", "max.message.bytes", "cleanup.policy"))
        values = {
            "retention.ms": _RETENTION,
            "max.message.bytes": ("1048588", "2097164", "5242880"),
            "cleanup.policy": ("delete", "compact", "compact,delete"),
        }
        value = dice.pick(values[key])
        records = [self._config(topic, key, None if dice.chance(0.1) else value)]
        if dice.chance(0.08) and len(topic.partitions[0].replicas) > 1:
            records.append(self._config(topic, MIN_ISR, dice.pick(("1", "2", "2"))))
        reason = dice.pick(WHY["ConfigTopic"])
        self._stage.answer(self.somebody(), "IncrementalAlterConfigs", records, reason)

    @staticmethod
    def _config(topic: Topic, key: str, value: str | None) -> ConfigRecord:
        if value is None:
            topic.configs.pop(key, None)
        else:
            topic.configs[key] = value
        return ConfigRecord(ConfigResourceType.TOPIC, topic.name, key, value)

    # Choices.

    def some_partition(self) -> Partition:
        return self._stage.dice.pick(self._stage.cluster.partitions.items)

    def somebody(self) -> Actor:
        """Who acts now: services at all hours, people at work, sometimes by way of a broker."""
        stage, dice = self._stage, self._stage.dice
        if dice.chance(0.12):
            broker = dice.pick(stage.cluster.active())
            return broker_actor(broker.id, broker.rack, dice.pick(PEOPLE).principal)
        if office_hours(stage.now_ms) and dice.chance(0.45):
            return dice.pick(PEOPLE)
        return dice.pick((TOPIC_OPERATOR, TOPIC_OPERATOR, CONNECT, SPARK_JOBS))
