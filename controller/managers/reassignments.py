"""Decides about reassignments: a partition's replicas move to other brokers (KIP-455, 860).

While a reassignment runs, a partition has the wanted replicas, followed by those that leave
(`removing`); `adding` names those that are new. The change of a partition that brings the wanted
replicas into the ISR completes the reassignment (`partition_change`). So starting and cancelling
only compute what the partition shall become.

A request may name many partitions. It is decided in rounds (`rounds`).
"""

from collections import Counter
from typing import NamedTuple

from controller.managers.assignments import default_directory, why_no_new_replica
from controller.managers.directories import may_lead
from controller.managers.partition_change import ElectionMode, Target, change_partition
from controller.managers.rounds import Rounds, Working
from controller.managers.topic_rules import TopicDefaults, TopicRules
from controller.result import Decide
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    AlteredReassignment,
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    ErrorReply,
    Reassignment,
)
from metadata.records import PartitionChangeRecord


class Alteration(NamedTuple):
    """The decisions about one request, which share its rounds. Submit it only once."""

    decide: Decide
    rounds: Rounds[Reassignment, AlteredReassignment]


class ReassignmentManager:
    """`alter` makes decisions about one request."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def alter(self, request: AlterReassignmentsRequest) -> Alteration:
        """Return the decisions about one request.

        If the request names only one partition, its error is raised as LogbergError.
        """
        rounds = Rounds(request.partitions, _result, AlteredReassignment, at_once=request.dry_run)
        times = Counter((wanted.topic, wanted.partition) for wanted in request.partitions)

        def decide(image: MetadataImage) -> Working:
            now = _Altering(image, TopicRules(image, self._defaults), request, times)
            return rounds.next(
                now.changed,
                lambda done: AlterReassignmentsReply(partitions=done, dry_run=request.dry_run),
            )

        return Alteration(decide, rounds)


def _result(wanted: Reassignment, error: ErrorReply | None) -> AlteredReassignment:
    return AlteredReassignment(topic=wanted.topic, partition=wanted.partition, error=error)


class _Altering:
    """One round of a request, on one image."""

    def __init__(
        self,
        image: MetadataImage,
        rules: TopicRules,
        request: AlterReassignmentsRequest,
        times: Counter[tuple[str, int]],
    ) -> None:
        self._image = image
        self._rules = rules
        self._request = request
        self._times = times

    def changed(self, wanted: Reassignment) -> PartitionChangeRecord | None:
        """Return the change of one partition; None if nothing changes. Raises LogbergError."""
        image, rules = self._image, self._rules
        name = f"{wanted.topic[:300]}-{wanted.partition}"
        if self._times[wanted.topic, wanted.partition] > 1:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"partition {name} is in the request twice"
            )
        topic = image.topics.named(wanted.topic)
        key = (b"" if topic is None else topic.topic_id, wanted.partition)
        partition = image.topics.partitions.get(key)
        if partition is None:
            raise LogbergError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}"
            )
        mode = ElectionMode.ONLINE
        if wanted.replicas is None:
            unclean = rules.unclean(key[0])
            target = _reverted(partition, name, unclean=unclean)
            mode = ElectionMode.UNCLEAN if unclean else ElectionMode.ONLINE
        else:
            if not self._request.allow_replication_factor_change:
                _check_factor(partition, wanted.replicas, name)
            _check_replicas(image, partition, wanted.replicas, name)
            target = started(partition, wanted.replicas)
        return change_partition(
            *key,
            partition,
            target,
            acceptable=may_lead(image, partition),
            rules=rules.of(key[0], partition, mode),
            default_directory=lambda broker_id: default_directory(image, broker_id),
        )


def started(partition: Partition, wanted: tuple[int, ...]) -> Target:
    """Return what a partition becomes when a reassignment to `wanted` starts.

    A running one is replaced: its replicas count as present, so those that nobody wants any more
    leave. As in Kafka, a list that comes out empty leaves that of the running one in place. But a
    replica that leaves is not being added any more: otherwise the reassignment would wait for it.
    """
    present = set(partition.replicas)
    removing = tuple(sorted(present.difference(wanted)))
    adding = tuple(sorted(set(wanted) - present))
    if not adding:
        adding = tuple(replica for replica in partition.adding if replica not in removing)
    return Target(replicas=(*wanted, *removing), removing=removing or None, adding=adding)


def _reverted(partition: Partition, name: str, *, unclean: bool) -> Target:
    """Return what a partition becomes when its reassignment is cancelled. Raises LogbergError.

    The added replicas go. If no other one is in sync, the first of the others becomes the ISR. That
    may lose writes, so it is done only where the topic allows unclean elections.
    """
    if not partition.adding and not partition.removing:
        raise LogbergError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"no reassignment of partition {name} is running"
        )
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    if not replicas:
        raise LogbergError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partition {name}: the reassignment adds all of its replicas, so none would be left; "
            "start another reassignment instead",
        )
    if not isr and not unclean:
        raise LogbergError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partition {name}: only added replicas are in sync; to cancel would lose writes. Wait "
            "until one of the others is in sync, or allow unclean.leader.election.enable",
        )
    return Target(isr=isr or replicas[:1], replicas=replicas, removing=(), adding=())


def _check_replicas(
    image: MetadataImage, partition: Partition, replicas: tuple[int, ...], name: str
) -> None:
    """Check the wanted replicas. Raises LogbergError INVALID_REPLICA_ASSIGNMENT."""

    def refuse(why: str) -> LogbergError:
        return LogbergError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partition {name}, replicas: {why}",
            {"field": "replicas"},
        )

    if not replicas:
        raise refuse("the list is empty; name at least one broker, or null to cancel")
    if len(set(replicas)) < len(replicas):
        raise refuse("a broker is named twice")
    for broker_id in replicas:
        if broker_id < 0:
            raise refuse(f"{broker_id} is not a broker id")
        if image.cluster.brokers.get(broker_id) is None:
            raise refuse(f"broker {broker_id} is not registered")
        why = "" if broker_id in partition.replicas else why_no_new_replica(image, broker_id)
        if why:
            raise refuse(why)


def _check_factor(partition: Partition, replicas: tuple[int, ...], name: str) -> None:
    """Check that the number of replicas stays. Raises LogbergError INVALID_REPLICATION_FACTOR."""
    now = len(set(partition.replicas) - set(partition.removing))
    if len(replicas) != now:
        raise LogbergError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"partition {name}: {len(replicas)} replicas instead of {now}, and "
            "allowReplicationFactorChange is false",
            {"field": "replicas"},
        )
