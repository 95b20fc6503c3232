"""Topics' lives: created, configured, grown, deleted.

Rule: who creates what is settled by the kind of topic: services own most, people try things out
and clean up after themselves, or forget it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from audit.generated.cast import BrokerProcess, LiveTopic
from audit.generated.people import CONNECT, PEOPLE, SPARK_JOBS, TOPIC_OPERATOR, WHY, Actor
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, office_hours
from audit.generated.stage import Stage
from controller.rehearsal.rehearsal import Answered
from metadata import messages
from metadata.partition_key import PlainPartitionKey

_AREAS: Final = (
    *("orders", "payments", "shipments", "clicks", "sessions", "prices", "stock", "emails"),
    *("fraud", "invoices", "devices", "audit", "search", "carts"),
)
_STAGES: Final = ("events", "commands", "changelog", "enriched", "raw", "dlq", "daily", "snapshots")
_CONFIGS: Final = {
    "retention.ms": ("86400000", "259200000", "604800000", "2592000000", "-1"),
    "max.message.bytes": ("1048588", "2097164", "5242880"),
    "cleanup.policy": ("delete", "compact", "compact,delete"),
}
_CONFIGURED: Final = ("retention.ms", *_CONFIGS)
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

    wanted: messages.NewTopic
    passing: bool


# Creation.


def _plan(stage: Stage, kind: _Kind, size: int) -> Planned:
    """Draw a topic."""
    dice, cast = stage.dice, stage.cast
    cast.named += 1
    base = f"{dice.pick(_AREAS)}.{dice.pick(_STAGES)}"
    prefix = "loadtest." if kind.passing else "scratch." if kind.factor == 1 else ""
    configs: dict[str, str | None] = {}
    if kind.min_isr is not None:
        configs["min.insync.replicas"] = kind.min_isr
    if dice.chance(0.3):
        compact = base.endswith(("changelog", "snapshots"))
        configs["cleanup.policy"] = "compact" if compact else "delete"
    wanted = messages.NewTopic(
        f"{prefix}{base}.v{cast.named}",
        num_partitions=size,
        replication_factor=min(kind.factor, len(stage.active)),
        configs=configs,
    )
    return Planned(wanted, kind.passing)


def _usual_kind(stage: Stage) -> _Kind:
    throw = stage.dice.below(100)
    return _SCRATCH if throw < 3 else _METRICS if throw < 15 else _CORE


def _usual(stage: Stage) -> tuple[_Kind, int]:
    return _usual_kind(stage), stage.dice.pick(stage.cast.sizes)


def plan_usual(stage: Stage) -> Planned:
    """Draw a topic of a usual kind and size."""
    return _plan(stage, *_usual(stage))


def populate(stage: Stage) -> None:
    """Create what the cluster is made of, some topics a request, over its first hours."""
    dice, cast = stage.dice, stage.cast
    wanted = cast.counted_topics
    made = partitions = 0
    at_ms = FIRST_TOPICS_MS
    requests = cast.target // (4 * cast.sizes[-3]) if wanted is None else wanted // 4
    gap_ms = _FILLED_MS // (1 + requests)
    while (partitions < cast.target) if wanted is None else (made < wanted):
        most = 8 if wanted is None else min(8, wanted - made)
        batch = []
        for _ in range(dice.between(1, most)):
            size = dice.pick(cast.sizes)
            batch.append((_usual_kind(stage), size))
            made, partitions = made + 1, partitions + size
        stage.after(at_ms, partial(_create, stage, TOPIC_OPERATOR, batch, "migration"))
        at_ms += dice.around(gap_ms)
    if wanted is not None:
        cast.target = partitions


def _create(stage: Stage, actor: Actor, wanted: Sequence[tuple[_Kind, int]], reason: str) -> None:
    create_planned(stage, actor, [_plan(stage, kind, size) for kind, size in wanted], reason)


def create_planned(
    stage: Stage, actor: Actor, planned: Sequence[Planned], reason: str, *, settles: bool = True
) -> Answered:
    """Create drawn topics; the cast has them then, unless this doesn't settle."""
    request = messages.CreateTopicsRequest(tuple(each.wanted for each in planned))
    answered = stage.ask(actor, "create_topics", request, reason)
    if not settles:
        return answered
    for each, made in zip(planned, answered.reply.topics, strict=True):
        assert made.error is None, made.error
        topic = stage.image.topics.named(each.wanted.name)
        assert topic is not None
        size = made.num_partitions, made.replication_factor
        live = LiveTopic(topic.name, topic.topic_id, *size, passing=each.passing)
        stage.cast.add(live, stage.image)
    return answered


def create(stage: Stage) -> None:
    """Somebody creates a topic or some; what is for trying out goes again."""
    dice, cast = stage.dice, stage.cast
    grows = cast.counted_topics is None and cast.partitions < 11 * cast.target // 10
    if grows and dice.chance(0.6):
        usual = [_usual(stage) for _ in range(dice.between(1, 3))]
        _create(stage, somebody(stage), usual, dice.pick(WHY["CreateTopics"]))
        return
    tried = [(dice.pick(_PASSING), dice.pick(cast.sizes)) for _ in range(dice.between(1, 4))]
    _create(stage, somebody(stage), tried, "load test, remove me")
    stage.after(dice.around(12 * HOUR_MS), partial(delete, stage))


def delete(stage: Stage) -> None:
    """Somebody deletes topics of those that pass."""
    dice = stage.dice
    doomed = dice.some(stage.cast.passing, dice.between(1, 4))
    if doomed:
        request = messages.DeleteTopicsRequest(names=tuple(topic.name for topic in doomed))
        reason = dice.pick(WHY["DeleteTopics"])
        stage.ask(somebody(stage), "delete_topics", request, reason)
        for topic in doomed:
            stage.cast.remove(topic)


def grow(stage: Stage) -> None:
    """A topic gets more partitions."""
    dice, cast = stage.dice, stage.cast
    if cast.partitions > 12 * cast.target // 10:
        return
    topic = dice.pick(cast.topics)
    first, count = topic.count, topic.count + dice.between(1, 3)
    if topic.factor > len(stage.active):
        return
    request = messages.CreatePartitionsRequest((messages.NewPartitions(topic.name, count),))
    reason = dice.pick(WHY["CreatePartitions"])
    stage.ask(somebody(stage), "create_partitions", request, reason)
    cast.grown(topic, first, count, stage.image)


def pair(
    stage: Stage, actor: Actor, brokers: tuple[BrokerProcess, BrokerProcess]
) -> PlainPartitionKey:
    """Create a topic of one partition on two brokers, the first of which leads."""
    stage.cast.named += 1
    row = messages.ReplicaAssignment(0, tuple(broker.id for broker in brokers))
    # The first replica alone is enough to take writes: the other may be far behind it.
    wanted = messages.NewTopic(
        f"telemetry.edge.v{stage.cast.named}",
        assignments=(row,),
        configs={"min.insync.replicas": "1"},
    )
    create_planned(stage, actor, [Planned(wanted, passing=False)], "two replicas will do")
    return stage.cast.topics[-1].id, 0


# Configs.


def configure(stage: Stage) -> None:
    """Somebody changes a topic's configs."""
    dice = stage.dice
    topic = dice.pick(stage.cast.topics)
    key = dice.pick(_CONFIGURED)
    value = dice.pick(_CONFIGS[key])
    changes = {key: None if dice.chance(0.1) else value}
    if dice.chance(0.08) and topic.factor > 1:
        changes["min.insync.replicas"] = dice.pick(("1", "2", "2"))
    reason = dice.pick(WHY["ConfigTopic"])
    set_configs(stage, somebody(stage), ("topic", topic.name), changes, reason)


def set_configs(
    stage: Stage,
    actor: Actor,
    resource: tuple[str, str],
    changes: dict[str, str | None],
    reason: str,
) -> None:
    """Set configs of a resource; None deletes one."""
    asked = (
        messages.ConfigChange(key, value)
        if value is not None
        else messages.ConfigChange(key, None, messages.ConfigOperation.DELETE)
        for key, value in changes.items()
    )
    one = messages.ConfigResourceChange(*resource, tuple(asked))
    stage.ask(actor, "alter_configs", messages.AlterConfigsRequest((one,)), reason)


# Choices.


def some_partition(stage: Stage) -> PlainPartitionKey:
    """Draw a partition: first its topic."""
    topic = stage.dice.pick(stage.cast.topics)
    return topic.id, stage.dice.below(topic.count)


def somebody(stage: Stage) -> Actor:
    """Who acts now: services at all hours, people at work, sometimes by way of a broker."""
    dice = stage.dice
    if dice.chance(0.12):
        return dice.pick(stage.active).actor(dice.pick(PEOPLE).principal)
    if office_hours(stage.now_ms) and dice.chance(0.45):
        return dice.pick(PEOPLE)
    return dice.pick((TOPIC_OPERATOR, TOPIC_OPERATOR, CONNECT, SPARK_JOBS))
