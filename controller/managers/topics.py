"""Decides about topics: which are created, and where their replicas lie.

The topics of one request are checked one by one, in the order of the request. Those that pass are
one atomic change. Topic ids and placements are random, so they are drawn here, by the leader, and
written into the records. Replay draws nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, islice

from controller.config import ControllerConfig
from controller.managers.assignments import (
    PartitionRecords,
    placed,
    same_brokers,
    why_not_assigned,
)
from controller.managers.configs import ConfigManager
from controller.managers.deletions import TopicDeletion
from controller.managers.topic_names import check_once
from controller.policies import CreateTopicPolicy, ProposedTopic, judge
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.topics import spelling
from metadata.messages import (
    CreatedTopic,
    CreateTopicsReply,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    error_reply,
)
from metadata.records import (
    PartitionRecord,
    Record,
    TopicRecord,
)
from metadata.uuids import uuid4_from, uuid_text
from runtime.randomness import Random

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_METADATA_TOPIC = "__cluster_metadata"
_STEP = 64
_TOPICS_STEP = 32
"""Topics that are checked between two yields, in some milliseconds."""
Working = Generator[None, None, ControllerResult]


class TopicManager:
    """`create` reads an image and returns records; `deletion` does so in rounds."""

    def __init__(
        self,
        config: ControllerConfig,
        random: Random,
        configs: ConfigManager,
        policy: CreateTopicPolicy | None = None,
    ) -> None:
        self._config = config
        self._random = random
        self._configs = configs
        self._policy = policy

    def create(self, image: MetadataImage, request: CreateTopicsRequest) -> Working:
        """Create topics. If there is only one, its error is raised as LogbergError."""
        times = Counter(topic.name for topic in request.topics)
        created: dict[str, str] = {}
        records: list[Record] = []
        partitions = 0
        results: list[CreatedTopic] = []
        for number, topic in enumerate(request.topics, 1):
            if number % _TOPICS_STEP == 0:
                yield
            try:
                check_once(times, topic.name)
                self.check_name(image, topic.name, created)
                mine = yield from self._records(image, topic, partitions)
            except LogbergError as error:
                if len(request.topics) == 1:
                    raise
                results.append(CreatedTopic(name=topic.name, error=error_reply(error)))
                continue
            records.extend(mine)
            created[spelling(topic.name)] = topic.name
            results.append(_created(mine))
            partitions += results[-1].num_partitions
        reply = CreateTopicsReply(topics=tuple(results), dry_run=request.dry_run)
        # Only created topics matter for `rests_on`: a refusal was right at some moment while the
        # request was under way.
        return ControllerResult(records, reply, rests_on=_still_right(image, records))

    def creates(self, request: CreateTopicsRequest) -> int:
        """Count the partitions that a request asks for. Raises LogbergError POLICY_VIOLATION.

        It raises only for a single topic. Of several, `create` refuses those beyond the limit.
        """
        total = sum(self._asked(topic) for topic in request.topics)
        if len(request.topics) == 1:
            self._check_total(request.topics[0], total)
        return min(total, self._config.partitions_per_request_max)

    def _asked(self, topic: NewTopic) -> int:
        """Return how many partitions a topic asks for; an invalid number counts as 0."""
        if topic.assignments:
            return len(topic.assignments)
        count = topic.num_partitions
        return self._config.default_partitions if count == -1 else max(count, 0)

    def _check_total(self, topic: NewTopic, total: int) -> None:
        limit = self._config.partitions_per_request_max
        if total > limit:
            raise LogbergError(
                ErrorCode.POLICY_VIOLATION,
                f"topic {topic.name[:300]!r}: {total} partitions in one request; a request creates "
                f"at most {limit} (partitions_per_request_max); send several requests, or let the "
                "operator raise the limit",
            )

    def deletion(self, request: DeleteTopicsRequest, *, at_once: bool = False) -> TopicDeletion:
        """Return the decisions about a request to delete topics. `at_once`: in one round."""
        return TopicDeletion(self._config, request, at_once=at_once or request.dry_run)

    def check_name(self, image: MetadataImage, name: str, created: dict[str, str]) -> None:
        """Check a new topic's name. `created`: other new ones, by spelling. Raises LogbergError."""
        if name == _METADATA_TOPIC:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"Creation of internal topic {_METADATA_TOPIC} is prohibited.",
            )
        if name in (".", "..") or _NAME.fullmatch(name) is None:
            raise LogbergError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic name {name[:300]!r}: a name has 1 to 249 letters, digits, '.', '_' or "
                "'-', and is neither '.' nor '..'",
            )
        if image.topics.named(name) is not None:
            raise LogbergError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
        other = created.get(spelling(name)) or image.topics.spelled_alike(name)
        if other is not None:
            raise LogbergError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name!r} would be the same as {other!r} in metrics, where '.' is '_'",
            )

    def _records(
        self, image: MetadataImage, topic: NewTopic, before: int
    ) -> Generator[None, None, list[Record]]:
        """Return the records of one topic, its configs and its partitions. Raises LogbergError.

        `before` counts the partitions of the topics before it in the request.
        """
        configs, config_records = self._configs.of_new_topic(topic.name, topic.configs)
        self._check_total(topic, before + self._asked(topic))
        if topic.assignments:
            rows: Iterator[tuple[int, ...]] = iter((yield from _assigned(image, topic)))
            count = len(topic.assignments)
        else:
            rows, count = self._placed(image, topic)
        first = next(rows)
        self._judge(topic, count, len(first), configs)
        topic_id = self._free_id(image)
        records: list[Record] = [TopicRecord(topic.name, topic_id), *config_records]
        made = PartitionRecords(image)
        for partition_id, replicas in enumerate(islice(chain((first,), rows), count)):
            records.append(made.of(topic_id, partition_id, replicas))
            if partition_id % _STEP == _STEP - 1:
                yield
        return records

    def _judge(self, topic: NewTopic, count: int, factor: int, configs: dict[str, str]) -> None:
        """Ask the policy. Raises LogbergError POLICY_VIOLATION."""
        if self._policy is None:
            return
        chosen = {row.partition_index: row.broker_ids for row in topic.assignments}
        proposed = ProposedTopic(topic.name, count, factor, chosen or None, configs)
        judge(self._policy.validate, proposed, f"topic {topic.name!r}")

    def _free_id(self, image: MetadataImage) -> bytes:
        """Draw a topic id that is not in use, even if the randomness repeats itself."""
        while True:
            topic_id = uuid4_from(self._random.getrandbits(122))
            if image.topics.by_id.get(topic_id) is None:
                return topic_id

    def _placed(
        self, image: MetadataImage, topic: NewTopic
    ) -> tuple[Iterator[tuple[int, ...]], int]:
        factor, count = topic.replication_factor, topic.num_partitions
        if factor == 0 or factor < -1:
            raise LogbergError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"topic {topic.name!r}: replicationFactor is {factor}; it is 1 or more, or -1 for "
                f"the default ({self._config.default_replication_factor})",
            )
        if count == 0 or count < -1:
            raise LogbergError(
                ErrorCode.INVALID_PARTITIONS,
                f"topic {topic.name!r}: numPartitions is {count}; it is 1 or more, or -1 for the "
                f"default ({self._config.default_partitions})",
            )
        count = self._config.default_partitions if count == -1 else count
        factor = self._config.default_replication_factor if factor == -1 else factor
        return placed(image, factor, self._random, f"topic {topic.name!r}"), count


def _still_right(
    image: MetadataImage, records: Sequence[Record]
) -> Callable[[MetadataImage], bool]:
    """Return a function that says whether the records are still right in a later image."""

    def still_right(later: MetadataImage) -> bool:
        topics = [record for record in records if isinstance(record, TopicRecord)]
        return same_brokers(image, later) and all(
            later.topics.by_id.get(topic.topic_id) is None
            and later.topics.named(topic.name) is None
            and later.topics.spelled_alike(topic.name) is None
            for topic in topics
        )

    return still_right


def _assigned(
    image: MetadataImage, topic: NewTopic
) -> Generator[None, None, list[tuple[int, ...]]]:
    """Return a manual assignment after checking it. Raises LogbergError."""
    if topic.num_partitions != -1 or topic.replication_factor != -1:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"topic {topic.name!r}: with assignments, numPartitions and replicationFactor are -1",
        )

    def refuse(why: str) -> LogbergError:
        return LogbergError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"topic {topic.name!r}, assignments: {why}"
        )

    rows = sorted((a.partition_index, a.broker_ids) for a in topic.assignments)
    if [index for index, _ in rows] != list(range(len(rows))):
        raise refuse("partitions should be a consecutive 0-based integer sequence")
    for index, replicas in rows:
        if index % _STEP == _STEP - 1:
            yield
        why = why_not_assigned(image, replicas, len(rows[0][1]))
        if why:
            raise refuse(f"partition {index} {why}")
    return [replicas for _, replicas in rows]


def _created(records: Sequence[Record]) -> CreatedTopic:
    topic, first = records[0], records[-1]
    assert isinstance(topic, TopicRecord)
    assert isinstance(first, PartitionRecord)
    return CreatedTopic(
        name=topic.name,
        topic_id=uuid_text(topic.topic_id),
        num_partitions=first.partition_id + 1,
        replication_factor=len(first.replicas),
    )
