"""Decides about reassignments: a partition's replicas move to other brokers (KIP-455, 860).

While a reassignment runs, a partition has the wanted replicas, followed by those that leave
(`removing`); `adding` names those that are new. The change of a partition that brings the wanted
replicas into the ISR completes the reassignment (`partition_change`). So starting and cancelling
only compute what the partition shall become.

A request may name many partitions. It is decided in rounds (`rounds`).
"""

from collections.abc import Collection, Generator, Iterator, Sequence

import msgspec

from controller.managers.assignments import default_directory, why_no_new_replica
from controller.managers.directories import may_lead
from controller.managers.partition_change import ElectionMode, Target, change_partition
from controller.managers.rounds import Rounds, Working
from controller.managers.topic_rules import TopicDefaults, TopicRules
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    AlteredReassignment,
    AlterReassignmentsReply,
    AlterReassignmentsRequest,
    ErrorReply,
    Reassignment,
)
from metadata.messages.parts import LongMessage
from metadata.records import PartitionChangeRecord

_SHORT = 256
"""A longer answer is encoded while it is sent."""
_STEP = 256
_Name = tuple[str, int]
"""Of a partition: the topic's name, and its number."""


class ReassignmentManager:
    """`alter` makes the decisions about one request."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults

    def alter(
        self, request: AlterReassignmentsRequest, wanted: Sequence[Reassignment]
    ) -> "Alteration":
        """Return the decisions about one request. `wanted` are its partitions."""
        return Alteration(self._defaults, request, wanted)


class Alteration:
    """One request, and how far it is."""

    def __init__(
        self,
        defaults: TopicDefaults,
        request: AlterReassignmentsRequest,
        wanted: Sequence[Reassignment],
    ) -> None:
        self._defaults = defaults
        self._request = request
        self._wanted = wanted
        self._repeated: frozenset[_Name] | None = None
        self.rounds = Rounds(wanted, _result, at_once=request.dry_run)

    def decide(self, image: MetadataImage) -> Working:
        """Decide about the next round.

        If the request names only one partition, its error is raised as LogbergError.
        """
        if self._repeated is None:
            self._repeated = yield from _repeated(self._wanted)
        now = _Altering(image, TopicRules(image, self._defaults), self._request, self._repeated)
        return (yield from self.rounds.next(now.changed, self._reply))

    def complete(self, reply: AlterReassignmentsReply) -> AlterReassignmentsReply | LongMessage:
        """Return the answer of all rounds. `reply` is that of the last one."""
        rounds, last = self.rounds, reply.partitions
        if len(last) <= _SHORT and not rounds.number:
            return reply
        head = msgspec.structs.replace(reply, partitions=())
        return LongMessage(head, "partitions", _Results(rounds, last), len(self._wanted))

    def _reply(self, last: tuple[AlteredReassignment, ...]) -> AlterReassignmentsReply:
        return AlterReassignmentsReply(partitions=last, dry_run=self._request.dry_run)


class _Results:
    """The results of all rounds. They are made while they are sent, perhaps to several callers."""

    def __init__(
        self,
        rounds: Rounds[Reassignment, AlteredReassignment],
        last: tuple[AlteredReassignment, ...],
    ) -> None:
        self._rounds = rounds
        self._last = last

    def __iter__(self) -> Iterator[AlteredReassignment]:
        yield from self._rounds.earlier()
        yield from self._last


def _repeated(wanted: Sequence[Reassignment]) -> Generator[None, None, frozenset[_Name]]:
    """Return the partitions that a request names more than once."""
    seen: dict[str, set[int]] = {}
    repeated: set[_Name] = set()
    for number, each in enumerate(wanted, start=1):
        numbers = seen.setdefault(each.topic, set())
        if each.partition in numbers:
            repeated.add((each.topic, each.partition))
        numbers.add(each.partition)
        if number % _STEP == 0:
            yield
    while seen:
        seen.popitem()
        if seen and len(seen) % _STEP == 0:
            yield
    return frozenset(repeated)


def _result(wanted: Reassignment, error: ErrorReply | None) -> AlteredReassignment:
    return AlteredReassignment(topic=wanted.topic, partition=wanted.partition, error=error)


class _Altering:
    """One round of a request, on one image."""

    def __init__(
        self,
        image: MetadataImage,
        rules: TopicRules,
        request: AlterReassignmentsRequest,
        repeated: Collection[_Name],
    ) -> None:
        self._image = image
        self._rules = rules
        self._request = request
        self._repeated = repeated

    def changed(self, wanted: Reassignment) -> PartitionChangeRecord | None:
        """Return the change of one partition; None if nothing changes. Raises LogbergError."""
        image, rules = self._image, self._rules
        name = f"{wanted.topic[:300]}-{wanted.partition}"
        if (wanted.topic, wanted.partition) in self._repeated:
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
