"""Decides what a broker says about its log directories (KIP-858, KIP-1066).

- It says in which directory each of its replicas lies (`assign`). If that directory does not work,
  the replica leaves the ISR in the same record. Kafka writes a second one.
- It says in its heartbeat which directories have failed. Its replicas there leave their ISRs, and
  its registration keeps the others (`report`).
- It says which directories are cordoned: they take no new replicas.

If no directory works any more, there is nothing left that a registration could name. Then the
broker is fenced, and stays so until a new process registers. In Kafka, the controller leaves that
to the broker, which should stop itself.
"""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from controller.managers.broker_states import registered
from controller.managers.directories import is_online, may_cordon, with_online_directory
from controller.managers.partition_change import Target, change_partition
from controller.managers.partition_events import is_active, leave_directories
from controller.managers.rounds import Rounds, Working
from controller.managers.sweep import Sweep
from controller.managers.topic_rules import TopicDefaults, TopicRules
from controller.result import ControllerResult, Decide
from metadata.errors import ErrorCode, LogbergError
from metadata.image import BrokerRegistration, MetadataImage
from metadata.messages import (
    AssignedReplica,
    AssignReplicasReply,
    AssignReplicasRequest,
    ErrorReply,
    ReplicaInDirectory,
)
from metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from metadata.uuids import parse_uuid_of


class DirectoryReport(NamedTuple):
    """What a heartbeat says of the broker's directories."""

    broker_id: int
    broker_epoch: int
    failed: frozenset[bytes]
    """They don't work."""
    cordoned: tuple[bytes, ...] | None
    """They take no new replicas; None: not said."""


class DirectoryManager:
    """`assign` and `report` make decisions about one request."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def assign(self, broker_id: int, request: AssignReplicasRequest) -> Decide:
        """Return a decision whose rounds share one request. Submit it to the proposer only once.

        It raises LogbergError STALE_BROKER_EPOCH. If the request names only one replica, its error
        is raised.

        The log doesn't remember what the rounds answered. An answer says only whether the replica
        lies where the broker says. So the next leader gives the same answer when the broker sends
        the request again, and writes nothing about replicas that lie there already.
        """
        rounds = Rounds(request.replicas, _result)
        times = Counter((wanted.topic_id, wanted.partition) for wanted in request.replicas)

        def decide(image: MetadataImage) -> Working:
            broker = registered(image, broker_id, request.broker_epoch)
            rules = TopicRules(image, self._defaults)
            result = yield from rounds.next(
                lambda wanted: _placed(image, rules, broker, wanted, times),
                lambda last: AssignReplicasReply(replicas=(*rounds.earlier(), *last)),
            )
            if result.round_answer is not None:
                rounds.resume(result.round_answer.body)
            return result

        return decide

    def news(self, image: MetadataImage, said: DirectoryReport) -> bool:
        """Return whether a report would write something."""
        broker = image.cluster.brokers.get(said.broker_id)
        if broker is None or broker.broker_epoch != said.broker_epoch:
            return False
        failed = _failed(broker, said.failed)
        return bool(failed and len(failed) < len(broker.log_dirs)) or (
            _cordoned(image, broker, said) is not None
        )

    def report(self, image: MetadataImage, said: DirectoryReport, sweep: Sweep) -> Working:
        """Take replicas out of ISRs whose directory has failed, and note the others.

        Raises LogbergError STALE_BROKER_EPOCH.
        """
        broker = registered(image, said.broker_id, said.broker_epoch)
        failed = _failed(broker, said.failed)
        if len(failed) == len(broker.log_dirs):
            failed = ()
        moved: list[PartitionChangeRecord] = []
        if failed:
            moved = yield from leave_directories(
                image, broker.broker_id, failed, self._defaults, sweep
            )
        reason = f"{len(failed)} log directories have failed" if failed else "cordoned directories"
        if sweep.more:
            return ControllerResult(moved, reason=reason, unfinished=True)
        cordoned = _cordoned(image, broker, said)
        if not failed and cordoned is None:
            return ControllerResult(())
        left = tuple(d for d in broker.log_dirs if d not in failed) if failed else ()
        change = BrokerRegistrationChangeRecord(
            broker.broker_id, broker.broker_epoch, log_dirs=left, cordoned_log_dirs=cordoned
        )
        return ControllerResult((*moved, change), reason=reason)


def nothing_works(image: MetadataImage, broker_id: int, failed: Collection[bytes]) -> bool:
    """Return whether all directories of a broker have failed."""
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and bool(broker.log_dirs) and set(broker.log_dirs) <= set(failed)


def _failed(broker: BrokerRegistration, failed: Collection[bytes]) -> tuple[bytes, ...]:
    """Return those that the registration still names."""
    return tuple(directory for directory in broker.log_dirs if directory in failed)


def _cordoned(
    image: MetadataImage, broker: BrokerRegistration, said: DirectoryReport
) -> tuple[bytes, ...] | None:
    """Return the cordoned directories to note; None if nothing changes."""
    if said.cordoned is None or not may_cordon(image):
        return None
    now = tuple(d for d in broker.log_dirs if d in said.cordoned and d not in said.failed)
    return None if now == (broker.cordoned_log_dirs or ()) else now


def _result(wanted: ReplicaInDirectory, error: ErrorReply | None) -> AssignedReplica:
    return AssignedReplica(topic_id=wanted.topic_id, partition=wanted.partition, error=error)


def _placed(
    image: MetadataImage,
    rules: TopicRules,
    broker: BrokerRegistration,
    wanted: ReplicaInDirectory,
    times: Counter[tuple[str, int]],
) -> PartitionChangeRecord | None:
    """Return the change of one partition; None if nothing changes. Raises LogbergError."""
    if times[wanted.topic_id, wanted.partition] > 1:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"replicas: partition {wanted.partition} of topic {wanted.topic_id} is there twice",
        )
    topic_id = parse_uuid_of("topicId", wanted.topic_id)
    if image.topics.by_id.get(topic_id) is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {wanted.topic_id}"
        )
    partition = image.topics.partitions.get((topic_id, wanted.partition))
    if partition is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {wanted.topic_id} has no partition {wanted.partition}",
        )
    broker_id = broker.broker_id
    if broker_id not in partition.replicas:
        raise LogbergError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {broker_id} has no replica of partition {wanted.partition} of topic "
            f"{wanted.topic_id}",
        )
    directory = parse_uuid_of("directory", wanted.directory)
    works = is_online(broker, directory)
    isr = partition.isr if works else tuple(r for r in partition.isr if r != broker_id)
    # The new directory counts for this broker's replica, the known ones for the others.
    others = with_online_directory(image, partition, lambda other: is_active(image, other))
    return change_partition(
        topic_id,
        wanted.partition,
        partition,
        Target(isr=isr, directories={broker_id: directory}),
        acceptable=lambda other: (
            works and is_active(image, other) if other == broker_id else others(other)
        ),
        rules=rules.of(topic_id, partition),
    )
