"""Elections that somebody asks for: ElectLeaders (KIP-460), and the balancing of leaders.

Rule: a preferred election is never unclean. An election that finds no other leader than the present
one writes nothing. What is looked at is the request's list, or the partitions that lack a leader or
their preferred one; never all partitions.
"""

from collections.abc import Generator

from controller.managers.asked_elections import (
    AskedElection,
    Elect,
    ElectionOfAll,
    Found,
    Limits,
    NamedElection,
)
from controller.managers.directories import with_online_directory
from controller.managers.partition_change import ElectionMode, Target, change_partition
from controller.managers.partition_events import ActiveBrokers
from controller.managers.passes import LOOKS_MAX, Pass
from controller.managers.sweep import ROUND
from controller.managers.topic_rules import TopicDefaults, TopicRules
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.image.partition_set import PartitionSet
from metadata.messages import (
    ELECTED_MAX,
    ElectionType,
    ElectLeadersRequest,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

Working = Generator[None, None, ControllerResult]


class ElectionManager:
    """Each public method reads an image and returns records."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def elect(self, request: ElectLeadersRequest) -> AskedElection:
        """Return the rounds of one request; of a dry run, its one round.

        Raises LogbergError INVALID_REQUEST.
        """
        _check_size(request)
        limits = Limits(None, None) if request.dry_run else Limits(ROUND, LOOKS_MAX)
        if request.topic_partitions is not None:
            return NamedElection(request, lambda image: self._judging(image, request), limits)
        return ElectionOfAll(
            request,
            lambda image: iter(_needing(image, request)),
            lambda image: self._judging(image, request),
            limits,
        )

    def asked(self, image: MetadataImage, request: ElectLeadersRequest) -> int:
        """Return how many partitions a request may change."""
        if request.topic_partitions is None:
            return len(_needing(image, request))
        return sum(len(topic.partitions) for topic in request.topic_partitions)

    def _judging(self, image: MetadataImage, request: ElectLeadersRequest) -> Elect:
        """Return a function that elects the leader of one partition of an image."""
        rules = TopicRules(image, self._defaults)
        active = ActiveBrokers(image)
        partitions = image.topics.partitions
        preferred = request.election_type is ElectionType.PREFERRED
        mode = ElectionMode.PREFERRED if preferred else ElectionMode.UNCLEAN
        unavailable = (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )

        def elect(key: PlainPartitionKey) -> tuple[Found, PartitionChangeRecord | None]:
            partition = partitions.get(key)
            if partition is None or (
                _is_preferred(partition) if preferred else partition.leader != NO_LEADER
            ):
                return ErrorCode.ELECTION_NOT_NEEDED.value, None
            record = _elected(image, key, partition, mode, rules, active)
            if record is None:
                return unavailable.value, None
            named = record.leader != NO_LEADER_CHANGE
            return record.leader if named else partition.leader, record

        return elect

    def balance(self, image: MetadataImage, once: Pass) -> Working:
        """Give partitions back to their preferred leaders, as many as one round takes."""
        rules = TopicRules(image, self._defaults)
        active = ActiveBrokers(image)
        partitions = image.topics.partitions

        def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
            partition = partitions.get(key)
            if partition is None or _is_preferred(partition):
                return None
            if partition.leader != NO_LEADER and not _can_prefer(partition, active):
                return None
            return _elected(image, key, partition, ElectionMode.PREFERRED, rules, active)

        unpreferred = image.topics.unpreferred
        records = yield from once.changes(lambda: iter(unpreferred), change)
        return ControllerResult(records, reason="leaders return to their preferred replicas")

    def unclean(self, image: MetadataImage, once: Pass) -> Working:
        """Elect a leader for each partition that has none, unclean where its topic allows it."""
        rules = TopicRules(image, self._defaults)
        active = ActiveBrokers(image)
        partitions = image.topics.partitions

        def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
            partition = partitions.get(key)
            if partition is None or not any(map(active.__getitem__, partition.replicas)):
                return None
            return _elected(image, key, partition, None, rules, active)

        leaderless = image.topics.leaderless
        records = yield from once.changes(lambda: iter(leaderless), change)
        return ControllerResult(records, reason="a replica can lead")


def _check_size(request: ElectLeadersRequest) -> None:
    named = sum(len(topic.partitions) for topic in request.topic_partitions or ())
    if named > ELECTED_MAX:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"topicPartitions: {named} partitions; a request names at most {ELECTED_MAX}: divide "
            "it, or ask for all with null",
        )


def _needing(image: MetadataImage, request: ElectLeadersRequest) -> PartitionSet:
    """Return the partitions that need an election, or may."""
    preferred = request.election_type is ElectionType.PREFERRED
    return image.topics.unpreferred if preferred else image.topics.leaderless


def _is_preferred(partition: Partition) -> bool:
    return partition.leader in partition.replicas[:1]


def _can_prefer(partition: Partition, active: ActiveBrokers) -> bool:
    first = partition.replicas[0] if partition.replicas else NO_LEADER
    return active[first] and first in partition.isr


def _elected(
    image: MetadataImage,
    key: PlainPartitionKey,
    partition: Partition,
    mode: ElectionMode | None,
    rules: TopicRules,
    active: ActiveBrokers,
) -> PartitionChangeRecord | None:
    return change_partition(
        *key,
        partition,
        Target(),
        acceptable=with_online_directory(image, partition, active.__getitem__),
        rules=rules.of(key[0], partition, mode),
    )
