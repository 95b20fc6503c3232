"""Elections that somebody asks for: ElectLeaders (KIP-460), and the balancing of leaders.

Rule: a preferred election is never unclean. An election that finds no other leader than the present
one writes nothing. What is looked at is the request's list, or the partitions that lack a leader or
their preferred one; never all partitions.
"""

from collections.abc import Generator, Iterable, Iterator

from controller.managers.directories import with_online_directory
from controller.managers.partition_change import ElectionMode, Target, change_partition
from controller.managers.passes import LOOKS_MAX, Pass
from controller.managers.sweep import ROUND, Change
from controller.managers.topic_rules import TopicDefaults, TopicRules
from controller.result import ControllerResult, Decide
from metadata.buckets import BucketMap
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    ELECTED_MAX,
    ElectedPartition,
    ElectedTopic,
    ElectionType,
    ElectLeadersReply,
    ElectLeadersRequest,
    error_reply,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

SHOWN_MAX = 2_000
"""Partitions in the answer about all partitions."""
_STEP = 64
Working = Generator[None, None, ControllerResult]
_Found = int | ErrorCode
"""The new leader of a partition, or why it has none."""


class ElectionManager:
    """Each public method reads an image and returns records."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def elect(self, request: ElectLeadersRequest) -> Decide:
        """Return the decision of one request. Its rounds share what they have found.

        Raises LogbergError INVALID_REQUEST.
        """
        _check_size(request)
        return _Election(request, self._defaults, Pass(ROUND, LOOKS_MAX)).decide

    def show(self, request: ElectLeadersRequest) -> Decide:
        """Return the decision of a dry run: all in one round."""
        _check_size(request)
        # It may be decided several times, so each decision begins anew.
        return lambda image: _Election(request, self._defaults, Pass(None, None)).decide(image)

    def asked(self, image: MetadataImage, request: ElectLeadersRequest) -> int:
        """Return how many partitions a request may change."""
        if request.topic_partitions is None:
            return len(_candidates(image, request.election_type))
        return sum(len(topic.partitions) for topic in request.topic_partitions)

    def balance(self, image: MetadataImage, once: Pass) -> Working:
        """Give partitions back to their preferred leaders, as many as one round takes."""
        rules = TopicRules(image, self._defaults)
        active = _active(image)
        partitions = image.topics.partitions

        def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
            partition = partitions.get(key)
            if partition is None or _is_preferred(partition):
                return None
            if partition.leader != NO_LEADER and not _can_prefer(partition, active):
                return None
            return _elected(image, key, partition, ElectionMode.PREFERRED, rules, active)

        unpreferred = image.topics.unpreferred
        records = yield from once.changes(
            lambda: (key for key, _ in unpreferred.unordered_items()), change
        )
        return ControllerResult(records, reason="leaders return to their preferred replicas")

    def unclean(self, image: MetadataImage, once: Pass) -> Working:
        """Elect a leader for each partition that has none, unclean where its topic allows it."""
        rules = TopicRules(image, self._defaults)
        active = _active(image)
        partitions = image.topics.partitions

        def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
            partition = partitions.get(key)
            if partition is None or active.isdisjoint(partition.replicas):
                return None
            return _elected(image, key, partition, None, rules, active)

        leaderless = image.topics.leaderless
        records = yield from once.changes(
            lambda: (key for key, _ in leaderless.unordered_items()), change
        )
        return ControllerResult(records, reason="a replica can lead")


class _Election:
    """One ElectLeaders request, through all its rounds."""

    def __init__(self, request: ElectLeadersRequest, defaults: TopicDefaults, rounds: Pass) -> None:
        self._request = request
        self._defaults = defaults
        self._rounds = rounds
        self._preferred = request.election_type is ElectionType.PREFERRED
        self._mode = ElectionMode.PREFERRED if self._preferred else ElectionMode.UNCLEAN
        self._about_all = request.topic_partitions is None
        self._found: dict[PlainPartitionKey, _Found] = {}
        """What each partition came to; if the request is about all, the first that are shown."""
        self._elected = 0
        self._failed = 0

    def decide(self, image: MetadataImage) -> Working:
        """Elect as many leaders as one round takes."""
        records = yield from self._rounds.changes(lambda: self._keys(image), self._changing(image))
        if self._rounds.more:
            return ControllerResult(records, unfinished=True)
        reply = yield from self._reply(image)
        return ControllerResult(records, reply)

    def _keys(self, image: MetadataImage) -> Iterable[PlainPartitionKey]:
        if self._about_all:
            found = _candidates(image, self._request.election_type)
            return (key for key, _ in found.unordered_items())
        return self._distinct(image)

    def _distinct(self, image: MetadataImage) -> Iterator[PlainPartitionKey]:
        seen: set[PlainPartitionKey] = set()
        for key, _ in self._rows(image):
            if key is not None and key not in seen:
                seen.add(key)
                yield key

    def _rows(
        self, image: MetadataImage
    ) -> Iterator[tuple[PlainPartitionKey | None, tuple[str, int]]]:
        """Yield each partition that the request names; None if it doesn't exist."""
        for topic in self._request.topic_partitions or ():
            known = image.topics.named(topic.topic)
            for partition_id in topic.partitions:
                key = None if known is None else (known.topic_id, partition_id)
                exists = key is not None and image.topics.partitions.get(key) is not None
                yield key if exists else None, (topic.topic, partition_id)

    def _changing(self, image: MetadataImage) -> Change:
        rules = TopicRules(image, self._defaults)
        active = _active(image)
        partitions = image.topics.partitions

        def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
            partition = partitions.get(key)
            if partition is None:
                return None
            if self._needs_none(partition):
                self._note(key, ErrorCode.ELECTION_NOT_NEEDED)
                return None
            record = _elected(image, key, partition, self._mode, rules, active)
            if record is None:
                self._note(key, self._unavailable)
            else:
                named = record.leader != NO_LEADER_CHANGE
                self._note(key, record.leader if named else partition.leader)
            return record

        return change

    def _note(self, key: PlainPartitionKey, found: _Found) -> None:
        """Note what a partition came to. Of all partitions, only the first are kept."""
        if self._about_all:
            if found is ErrorCode.ELECTION_NOT_NEEDED:
                return
            self._count(found)
            if len(self._found) == SHOWN_MAX:
                return
        self._found[key] = found

    def _count(self, found: _Found) -> None:
        self._elected += isinstance(found, int)
        self._failed += not isinstance(found, int)

    @property
    def _unavailable(self) -> ErrorCode:
        return (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if self._preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )

    def _needs_none(self, partition: Partition) -> bool:
        return _is_preferred(partition) if self._preferred else partition.leader != NO_LEADER

    def _reply(self, image: MetadataImage) -> Generator[None, None, ElectLeadersReply]:
        """Return the answer about all rounds."""
        topics: dict[str, list[ElectedPartition]] = {}
        for number, (name, partition_id, found) in enumerate(self._results(image), 1):
            if not self._about_all:
                self._count(found)
            topics.setdefault(name, []).append(_shown(partition_id, found))
            if number % _STEP == 0:
                yield
        return ElectLeadersReply(
            tuple(ElectedTopic(name, tuple(found)) for name, found in topics.items()),
            self._elected,
            self._failed,
            dry_run=self._request.dry_run,
        )

    def _results(self, image: MetadataImage) -> Iterator[tuple[str, int, _Found]]:
        """Yield what each partition came to: in the request's order, or in that of the rounds."""
        if self._about_all:
            for key, found in self._found.items():
                topic = image.topics.by_id.get(key[0])
                if topic is not None:
                    yield topic.name, key[1], found
            return
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for known, (name, partition_id) in self._rows(image):
            found = unknown if known is None else self._found.get(known, unknown)
            yield name, partition_id, found


def _check_size(request: ElectLeadersRequest) -> None:
    named = sum(len(topic.partitions) for topic in request.topic_partitions or ())
    if named > ELECTED_MAX:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"topicPartitions: {named} partitions; a request names at most {ELECTED_MAX}: divide "
            "it, or ask for all with null",
        )


def _candidates(
    image: MetadataImage, election_type: ElectionType
) -> BucketMap[PlainPartitionKey, bool]:
    topics = image.topics
    return topics.unpreferred if election_type is ElectionType.PREFERRED else topics.leaderless


def _active(image: MetadataImage) -> frozenset[int]:
    return frozenset(b.broker_id for b in image.cluster.brokers.values() if b.active)


def _is_preferred(partition: Partition) -> bool:
    return partition.leader in partition.replicas[:1]


def _can_prefer(partition: Partition, active: frozenset[int]) -> bool:
    first = partition.replicas[0] if partition.replicas else NO_LEADER
    return first in active and first in partition.isr


def _elected(
    image: MetadataImage,
    key: PlainPartitionKey,
    partition: Partition,
    mode: ElectionMode | None,
    rules: TopicRules,
    active: frozenset[int],
) -> PartitionChangeRecord | None:
    return change_partition(
        *key,
        partition,
        Target(),
        acceptable=with_online_directory(image, partition, active.__contains__),
        rules=rules.of(key[0], partition, mode),
    )


def _shown(partition_id: int, found: _Found) -> ElectedPartition:
    if isinstance(found, int):
        return ElectedPartition(partition_id, found)
    return ElectedPartition(partition_id, error=error_reply(LogbergError(found)))
