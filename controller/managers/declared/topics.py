"""Compares declared topics with those of an image.

New topics and added partitions are decided by the managers of the single routes. Replicas that are
elsewhere than declared, or another number of them, need a reassignment. That takes hours and isn't
one transaction, so an apply refuses it and says how to do it.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from controller.managers.declared.configs import ConfigComparison
from controller.managers.declared.plan import CREATE, REMOVE, ApplyPlan, Item, Working, invalid
from controller.managers.partitions import PartitionManager
from controller.managers.topics import TopicManager
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition, Topic
from metadata.messages import (
    CreatePartitionsReply,
    CreatePartitionsRequest,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeclaredTopic,
    DeleteTopicsReply,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
)
from metadata.records import ConfigResourceType

_STEP: Final = 32
"""Topics between two yields."""
_ROWS: Final = 256
"""Partitions between two yields."""
_MOVED_SHOWN: Final = 10
"""The most partitions of a topic that the plan shows as being elsewhere."""


class TopicManagers(NamedTuple):
    """Who decides about topics and partitions."""

    topics: TopicManager
    partitions: PartitionManager


class TopicComparison:
    """Collects the new topics, the added partitions and the deletions of one plan."""

    def __init__(self, plan: ApplyPlan, image: MetadataImage, configs: ConfigComparison) -> None:
        self._plan = plan
        self._image = image
        self._configs = configs
        self._new: list[tuple[Item, NewTopic]] = []
        self._grown: list[tuple[Item, NewPartitions]] = []
        self._removed: list[Item] = []

    def compare_all(
        self, declared: Sequence[DeclaredTopic], *, prune: bool, delete: bool
    ) -> Working:
        """Compare what is declared, and with `delete` also the topics that aren't."""
        for number, wanted in enumerate(declared, 1):
            item = self._plan.item("topic", wanted.name)
            topic = self._image.topics.named(wanted.name)
            if wanted.assignments and (wanted.partitions, wanted.replication_factor) != (
                None,
                None,
            ):
                item.refuse(
                    invalid("with assignments, partitions and replicationFactor are not given")
                )
            elif topic is None:
                self._create(item, wanted)
            else:
                yield from self._compare(item, topic, wanted)
                self._configs.compare(
                    item, (ConfigResourceType.TOPIC, topic.name), wanted.configs, prune=prune
                )
            if number % _STEP == 0:
                yield
        if delete:
            kept = {topic.name for topic in declared}
            for number, name in enumerate(self._image.topics.names, 1):
                if name not in kept:
                    self._remove(name)
                if number % _STEP == 0:
                    yield

    def decide(self, managers: TopicManagers) -> Working:
        """Let the managers decide."""
        yield from self._decide_new(managers.topics)
        yield from self._decide_grown(managers.partitions)
        yield from self._decide_removed(managers.topics)

    def _create(self, item: Item, wanted: DeclaredTopic) -> None:
        item.action = CREATE
        rows = tuple(ReplicaAssignment(i, row) for i, row in enumerate(wanted.assignments))
        configs = {key: value for key, value in wanted.configs.items() if value is not None}
        count, factor = wanted.partitions, wanted.replication_factor
        new = NewTopic(
            wanted.name,
            -1 if count is None else count,
            -1 if factor is None else factor,
            rows,
            dict[str, str | None](configs),
        )
        self._new.append((item, new))

    def _compare(
        self, item: Item, topic: Topic, wanted: DeclaredTopic
    ) -> Generator[None, None, None]:
        numbers = self._image.topics.ids_of(topic.topic_id)
        count = len(wanted.assignments) or wanted.partitions
        if count is not None and count != len(numbers):
            item.differs("partitions", len(numbers), count)
            added = wanted.assignments[len(numbers) :] if wanted.assignments else None
            self._grown.append((item, NewPartitions(topic.name, count, added)))
        factor = wanted.replication_factor
        if factor is not None and numbers:
            now = len(targets_of(self._image.topics.partitions[topic.topic_id, numbers[0]]))
            if factor != now:
                item.differs("replicationFactor", now, factor)
                item.refuse(_moves(topic.name, ErrorCode.INVALID_REPLICATION_FACTOR))
        yield from self._compare_rows(item, topic, wanted)

    def _compare_rows(
        self, item: Item, topic: Topic, wanted: DeclaredTopic
    ) -> Generator[None, None, None]:
        """Compare where the replicas of existing partitions are with where they are declared."""
        moved = 0
        for number, row in enumerate(wanted.assignments):
            partition = self._image.topics.partitions.get((topic.topic_id, number))
            if partition is not None and targets_of(partition) != row:
                moved += 1
                if moved <= _MOVED_SHOWN:
                    item.differs(f"replicas of {number}", _ids(targets_of(partition)), _ids(row))
            if number % _ROWS == _ROWS - 1:
                yield
        if moved:
            item.refuse(_moves(topic.name, ErrorCode.INVALID_REPLICA_ASSIGNMENT))

    def _remove(self, name: str) -> None:
        item = self._plan.item("topic", name, REMOVE)
        topic = self._image.topics.named(name)
        assert topic is not None
        item.differs("partitions", len(self._image.topics.ids_of(topic.topic_id)), None)
        self._removed.append(item)

    def _decide_new(self, topics: TopicManager) -> Working:
        if not self._new:
            return
        request = CreateTopicsRequest(tuple(new for _, new in self._new))
        try:
            result = yield from topics.create(self._image, request)
        except LogbergError as error:
            _refuse_all([item for item, _ in self._new], error)
        else:
            reply = result.reply
            assert isinstance(reply, CreateTopicsReply)
            for (item, _), created in zip(self._new, reply.topics, strict=True):
                item.refuse(created.error)
                if created.error is None:
                    item.differs("partitions", None, created.num_partitions)
                    item.differs("replicationFactor", None, created.replication_factor)
            self._plan.add(result)
        for item, new in self._new:
            for key, value in sorted(new.configs.items()):
                item.differs(key, None, value)

    def _decide_grown(self, partitions: PartitionManager) -> Working:
        if not self._grown:
            return
        request = CreatePartitionsRequest(tuple(more for _, more in self._grown))
        try:
            result = yield from partitions.create(self._image, request)
        except LogbergError as error:
            _refuse_all([item for item, _ in self._grown], error)
            return
        reply = result.reply
        assert isinstance(reply, CreatePartitionsReply)
        for (item, _), added in zip(self._grown, reply.topics, strict=True):
            item.refuse(added.error)
        self._plan.add(result)

    def _decide_removed(self, topics: TopicManager) -> Working:
        if not self._removed:
            return
        request = DeleteTopicsRequest(names=tuple(item.name for item in self._removed))
        deletion = topics.deletion(request, at_once=True)
        try:
            yield from deletion.partitions(self._image)
            result = yield from deletion.decide(self._image)
        except LogbergError as error:
            _refuse_all(self._removed, error)
            return
        reply = result.reply
        assert isinstance(reply, DeleteTopicsReply)
        for item, deleted in zip(self._removed, reply.topics, strict=True):
            item.refuse(deleted.error)
        self._plan.add(result, at_end=True)


def partitions_touched(
    image: MetadataImage, declared: Sequence[DeclaredTopic], managers: TopicManagers
) -> Generator[None, None, int]:
    """Count the partitions that would be created, for the quota; what is refused counts 0."""
    total = 0
    for number, wanted in enumerate(declared, 1):
        topic = image.topics.named(wanted.name)
        count = len(wanted.assignments) or wanted.partitions
        if topic is not None:
            total += max(0, (count or 0) - len(image.topics.ids_of(topic.topic_id)))
        else:
            new = NewTopic(wanted.name, -1 if count is None else count)
            with suppress(LogbergError):
                total += managers.topics.creates(CreateTopicsRequest((new,)))
        if number % _STEP == 0:
            yield
    return total


def partitions_deleted(
    image: MetadataImage, declared: Sequence[DeclaredTopic]
) -> Generator[None, None, int]:
    """Count the partitions of the topics that are not declared."""
    kept = {topic.name for topic in declared}
    total = 0
    for number, name in enumerate(image.topics.names, 1):
        if name not in kept:
            total += len(image.topics.ids_of(image.topics.by_name[name]))
        if number % _STEP == 0:
            yield
    return total


def targets_of(partition: Partition) -> tuple[int, ...]:
    """Return the replicas of a partition; during a reassignment: those after it."""
    removing = partition.removing
    return tuple(broker for broker in partition.replicas if broker not in removing)


def _refuse_all(items: Sequence[Item], error: LogbergError) -> None:
    """Note an error for all items of a request: it is of the only one, or of the request."""
    for item in items:
        item.refuse(error)


def _moves(name: str, code: ErrorCode) -> LogbergError:
    return invalid(
        f"topic {name!r}: an apply moves no replicas. Move them with `logberg reassign`, or "
        "declare what is there (`logberg export` shows it)",
        code,
    )


def _ids(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))
