"""Decides about partitions that are added to topics (Kafka's CreatePartitions).

The topics of one request are checked one by one, in the order of the request. Those that pass are
one atomic change. A new partition is like one of a new topic: see `assignments`. Its number of
replicas is that of the topic's first partition.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import islice

from controller.config import ControllerConfig
from controller.managers.assignments import (
    PartitionRecords,
    placed,
    same_brokers,
    why_not_assigned,
)
from controller.managers.topic_names import check_once, known_topic
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Topic
from metadata.messages import (
    CreatedPartitions,
    CreatePartitionsReply,
    CreatePartitionsRequest,
    NewPartitions,
    error_reply,
)
from metadata.records import Record
from runtime.randomness import Random

_STEP = 64
_TOPICS_STEP = 32
"""Topics that are checked between two yields."""
Working = Generator[None, None, ControllerResult]


class PartitionManager:
    """`create` reads an image and returns records."""

    def __init__(self, config: ControllerConfig, random: Random) -> None:
        self._config = config
        self._random = random

    def adds(self, image: MetadataImage, request: CreatePartitionsRequest) -> int:
        """Count the partitions that a request adds, for the quota; what is refused counts 0."""
        total = 0
        for topic in request.topics:
            with suppress(LogbergError):
                known = known_topic(image, topic.name, by_id=False)
                total += max(0, topic.count - len(image.topics.ids_of(known.topic_id)))
        return min(total, self._config.partitions_per_request_max)

    def create(self, image: MetadataImage, request: CreatePartitionsRequest) -> Working:
        """Add partitions. If there is only one topic, its error is raised as LogbergError."""
        times = Counter(topic.name for topic in request.topics)
        records: list[Record] = []
        touched: list[bytes] = []
        results: list[CreatedPartitions] = []
        for number, wanted in enumerate(request.topics, 1):
            if number % _TOPICS_STEP == 0:
                yield
            try:
                check_once(times, wanted.name)
                topic = known_topic(image, wanted.name, by_id=False)
                mine = yield from self._records(image, topic, wanted, len(records))
            except LogbergError as error:
                if len(request.topics) == 1:
                    raise
                results.append(CreatedPartitions(name=wanted.name, error=error_reply(error)))
                continue
            records.extend(mine)
            touched.append(topic.topic_id)
            results.append(CreatedPartitions(name=wanted.name, count=wanted.count, added=len(mine)))
        reply = CreatePartitionsReply(topics=tuple(results), dry_run=request.dry_run)
        return ControllerResult(
            records, reply, rests_on=_still_right(image), touches=frozenset(touched)
        )

    def _records(
        self, image: MetadataImage, topic: Topic, wanted: NewPartitions, before: int
    ) -> Generator[None, None, list[Record]]:
        """Return the records of one topic's new partitions. Raises LogbergError."""
        numbers = image.topics.ids_of(topic.topic_id)
        self._check_count(wanted, len(numbers), before)
        # A log may lack low numbers; the next free number is behind the highest.
        first = numbers[-1] + 1 if numbers else 0
        added = wanted.count - len(numbers)
        factor = self._config.default_replication_factor
        if numbers:
            factor = len(image.topics.partitions[topic.topic_id, numbers[0]].replicas)
        if wanted.assignments is None:
            rows = placed(image, factor, self._random, f"topic {topic.name!r}")
        else:
            rows = iter((yield from _assigned(image, wanted, first, factor)))
        records: list[Record] = []
        made = PartitionRecords(image)
        for number, replicas in enumerate(islice(rows, added)):
            records.append(made.of(topic.topic_id, first + number, replicas))
            if number % _STEP == _STEP - 1:
                yield
        return records

    def _check_count(self, wanted: NewPartitions, present: int, before: int) -> None:
        """Check the numbers of one topic. `before`: what the request adds to other topics."""
        if wanted.count <= present:
            raise LogbergError(
                ErrorCode.INVALID_PARTITIONS,
                f"topic {wanted.name!r}, count: it is {wanted.count}, and the topic has {present} "
                "partitions; count is the new total, and partitions can't be taken away",
                {"field": "count"},
            )
        added = wanted.count - present
        if wanted.assignments is not None and len(wanted.assignments) != added:
            given = len(wanted.assignments)
            # Kafka's words.
            raise LogbergError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"topic {wanted.name!r}, assignments: Attempted to add {added} additional "
                f"partition(s), but {'only ' if given < added else ''}{given} assignment(s) were "
                "specified.",
                {"field": "assignments"},
            )
        limit = self._config.partitions_per_request_max
        if before + added > limit:
            raise LogbergError(
                ErrorCode.POLICY_VIOLATION,
                f"topic {wanted.name!r}: {before + added} partitions in one request; a request "
                f"adds at most {limit} (partitions_per_request_max); send several requests",
                {"field": "count"},
            )


def _assigned(
    image: MetadataImage, wanted: NewPartitions, first: int, factor: int
) -> Generator[None, None, Iterator[tuple[int, ...]]]:
    """Return the lists of a request after checking them. Raises LogbergError."""
    assert wanted.assignments is not None
    for number, replicas in enumerate(wanted.assignments):
        why = why_not_assigned(image, replicas, factor)
        if why:
            raise LogbergError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"topic {wanted.name!r}, assignments: partition {first + number} {why}",
                {"field": "assignments"},
            )
        if number % _STEP == _STEP - 1:
            yield
    return iter(wanted.assignments)


def _still_right(image: MetadataImage) -> Callable[[MetadataImage], bool]:
    """Return a function that says whether the records are right in a later image.

    It compares the brokers. `touches` says whether somebody changed the topics.
    """
    return lambda later: same_brokers(image, later)
