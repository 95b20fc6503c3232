"""Topics' lives: created, configured, grown, deleted.

Rule: who creates what is settled by the kind of topic: services own most, people try things out
and clean up after themselves, or forget it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from audit.generated.cast import BrokerProcess, Cast, LiveTopic
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
from controller.rehearsal.rehearsal import Answered
from metadata.messages import (
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    ConfigResourceChange,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
)
from metadata.partition_key import PlainPartitionKey

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
_MANY: Final = 5_000
"""Partitions of a cluster whose topics are large."""
_RETENTION: Final = ("86400000", "259200000", "604800000", "2592000000", "-1")
FIRST_TOPICS_MS: Final = 5 * MINUTE_MS
"""After the brokers are there."""
_FILLED_MS: Final = 4 * HOUR_MS
"""After so long the cluster has what it is made of, about."""
RECORDS_PER_TOPIC: Final = 12
"""The fewest records for each topic of a history whose topics are counted."""


class _Kind(NamedTuple):
    """What is usual for a topic."""

    factor: int
    min_isr: str | None
    passing: bool


_CORE: Final = _Kind(3, "2", passing=False)
_METRICS: Final = _Kind(2, None, passing=False)
_SCRATCH: Final = _Kind(1, None, passing=False)
_PASSING: Final = (_Kind(1, None, passing=True), _Kind(2, None, passing=True))


class Planned(NamedTuple):
    """A topic to create."""

    wanted: NewTopic
    passing: bool


class Topics:
    """What happens to topics."""

    def __init__(self, stage: Stage, cast: Cast, partitions: int, topics: int | None) -> None:
        """`partitions`: how many the cluster has, about.

        `topics`: how many stay; None: as many as have these partitions.
        """
        self._stage = stage
        self._cast = cast
        self._sizes = _SMALL if partitions < _MANY or topics is not None else _LARGE
        self._target = partitions
        self._topics = topics
        self._named = 0

    # Creation.

    def plan(self, kind: _Kind, size: int) -> Planned:
        """Draw a topic."""
        dice = self._stage.dice
        self._named += 1
        base = f"{dice.pick(_AREAS)}.{dice.pick(_STAGES)}"
        prefix = "loadtest." if kind.passing else "scratch." if kind.factor == 1 else ""
        configs: dict[str, str | None] = {}
        if kind.min_isr is not None:
            configs["min.insync.replicas"] = kind.min_isr
        if dice.chance(0.3):
            policy = "compact" if base.endswith(("changelog", "snapshots")) else "delete"
            configs["cleanup.policy"] = policy
        live = len(self._cast.active(self._stage.image))
        return Planned(
            NewTopic(
                f"{prefix}{base}.v{self._named}",
                num_partitions=size,
                replication_factor=min(kind.factor, live),
                configs=configs,
            ),
            kind.passing,
        )

    def populate(self) -> None:
        """Create what the cluster is made of, some topics a request, over its first hours."""
        stage, dice = self._stage, self._stage.dice
        wanted = self._topics
        made = partitions = 0
        at_ms = FIRST_TOPICS_MS
        requests = self._target // (4 * self._sizes[-3]) if wanted is None else wanted // 4
        gap_ms = _FILLED_MS // (1 + requests)
        while (partitions < self._target) if wanted is None else (made < wanted):
            batch = []
            most = 8 if wanted is None else min(8, wanted - made)
            for _ in range(dice.between(1, most)):
                size = dice.pick(self._sizes)
                batch.append((self._usual_kind(), size))
                made, partitions = made + 1, partitions + size
            stage.after(at_ms, partial(self._create, TOPIC_OPERATOR, tuple(batch), "migration"))
            at_ms += dice.around(gap_ms)
        if wanted is not None:
            self._target = partitions

    def _usual_kind(self) -> _Kind:
        throw = self._stage.dice.below(100)
        return _SCRATCH if throw < 3 else _METRICS if throw < 15 else _CORE

    def _create(self, actor: Actor, wanted: Sequence[tuple[_Kind, int]], reason: str) -> None:
        self.create_planned(actor, [self.plan(kind, size) for kind, size in wanted], reason)

    def create_planned(self, actor: Actor, planned: Sequence[Planned], reason: str) -> Answered:
        """Create drawn topics."""
        request = CreateTopicsRequest(tuple(each.wanted for each in planned))
        answered = self._stage.ask(actor, "create_topics", request, reason)
        self.created(answered, planned)
        return answered

    def created(self, answered: Answered, planned: Sequence[Planned]) -> None:
        """Topics were created: the cast has them."""
        image = self._stage.image
        for each, made in zip(planned, answered.reply.topics, strict=True):
            assert made.error is None, made.error
            topic = image.topics.named(each.wanted.name)
            assert topic is not None
            self._cast.add(
                LiveTopic(
                    topic.name,
                    topic.topic_id,
                    made.num_partitions,
                    made.replication_factor,
                    passing=each.passing,
                ),
                image,
            )

    def create(self) -> None:
        """Somebody creates a topic or some; what is for trying out goes again."""
        dice = self._stage.dice
        grows = self._topics is None and self._cast.partitions < 11 * self._target // 10
        if grows and dice.chance(0.6):
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
        doomed = dice.some(self._cast.passing, dice.between(1, 4))
        if doomed:
            request = DeleteTopicsRequest(names=tuple(topic.name for topic in doomed))
            reason = dice.pick(WHY["DeleteTopics"])
            stage.ask(self.somebody(), "delete_topics", request, reason)
            for topic in doomed:
                self._cast.remove(topic)

    def grow(self) -> None:
        """A topic gets more partitions."""
        stage, dice = self._stage, self._stage.dice
        if self._cast.partitions > 12 * self._target // 10:
            return
        topic = dice.pick(self._cast.topics)
        first, count = topic.count, topic.count + dice.between(1, 3)
        live = len(self._cast.active(stage.image))
        if topic.factor > live:
            return
        request = CreatePartitionsRequest((NewPartitions(topic.name, count),))
        reason = dice.pick(WHY["CreatePartitions"])
        stage.ask(self.somebody(), "create_partitions", request, reason)
        self._cast.grown(topic, first, count, stage.image)

    def plan_usual(self) -> Planned:
        """Draw a topic of a usual kind and size."""
        return self.plan(self._usual_kind(), self._stage.dice.pick(self._sizes))

    def pair(self, actor: Actor, brokers: tuple[BrokerProcess, BrokerProcess]) -> PlainPartitionKey:
        """Create a topic of one partition on two brokers, the first of which leads."""
        self._named += 1
        name = f"telemetry.edge.v{self._named}"
        row = ReplicaAssignment(0, tuple(broker.id for broker in brokers))
        # The first replica alone is enough to take writes: the other may be far behind it.
        wanted = NewTopic(name, assignments=(row,), configs={"min.insync.replicas": "1"})
        self.create_planned(actor, [Planned(wanted, passing=False)], "two replicas will do")
        return self._cast.topics[-1].id, 0

    # Configs.

    def configure(self) -> None:
        """Somebody changes a topic's configs."""
        dice = self._stage.dice
        topic = dice.pick(self._cast.topics)
        key = dice.pick(("retention.ms", "retention.ms", "max.message.bytes", "cleanup.policy"))
        values = {
            "retention.ms": _RETENTION,
            "max.message.bytes": ("1048588", "2097164", "5242880"),
            "cleanup.policy": ("delete", "compact", "compact,delete"),
        }
        value = dice.pick(values[key])
        changes = [config_change(key, None if dice.chance(0.1) else value)]
        if dice.chance(0.08) and topic.factor > 1:
            changes.append(config_change("min.insync.replicas", dice.pick(("1", "2", "2"))))
        reason = dice.pick(WHY["ConfigTopic"])
        resource = ConfigResourceChange("topic", topic.name, tuple(changes))
        self._stage.ask(self.somebody(), "alter_configs", AlterConfigsRequest((resource,)), reason)

    # Choices.

    def some_partition(self) -> PlainPartitionKey:
        topic = self._stage.dice.pick(self._cast.topics)
        return topic.id, self._stage.dice.below(topic.count)

    def somebody(self) -> Actor:
        """Who acts now: services at all hours, people at work, sometimes by way of a broker."""
        stage, dice = self._stage, self._stage.dice
        if dice.chance(0.12):
            broker = dice.pick(self._cast.active(stage.image))
            return broker_actor(broker.id, broker.rack, dice.pick(PEOPLE).principal)
        if office_hours(stage.now_ms) and dice.chance(0.45):
            return dice.pick(PEOPLE)
        return dice.pick((TOPIC_OPERATOR, TOPIC_OPERATOR, CONNECT, SPARK_JOBS))


def config_change(key: str, value: str | None) -> ConfigChange:
    """Set a config; None deletes it."""
    if value is None:
        return ConfigChange(key, None, ConfigOperation.DELETE)
    return ConfigChange(key, value)
