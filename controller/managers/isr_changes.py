"""AlterPartition: the leader of a partition changes its ISR (KIP-497, 704, 841, 903).

Rule: a leader changes only exactly the state that it knows. It names the leader epoch and the
partition epoch, and a request with any other epoch is refused. Nobody enters an ISR whose broker is
fenced, stopping, unregistered or another process than the leader believes, or whose log directory
has failed. Kafka has no rule about the directory. Each partition is judged by itself, in the order
of Kafka's checks.
"""

from collections.abc import Generator
from typing import NamedTuple

import msgspec

from controller.managers.broker_states import registered
from controller.managers.directories import directory_of, is_online, may_lead
from controller.managers.partition_change import Target, change_partition
from controller.managers.sweep import IsLeaving
from controller.managers.topic_rules import TopicDefaults, TopicRules
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.messages import (
    ALTERED_MAX,
    AlteredPartition,
    AlteredTopic,
    AlterPartitionReply,
    AlterPartitionRequest,
    IsrMember,
    PartitionToAlter,
    TopicToAlter,
    error_reply,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER_CHANGE, LeaderRecoveryState, PartitionChangeRecord
from metadata.uuids import parse_uuid_of

_STEP = 64
"""Partitions between two yields."""


class _Done(NamedTuple):
    """A change of one partition, and the answer about it."""

    record: PartitionChangeRecord | None
    answer: AlteredPartition


class IsrManager:
    """Each public method reads an image and returns records."""

    def __init__(
        self,
        defaults: TopicDefaults,
        is_leaving: IsLeaving = lambda _broker_id, _directory: False,
    ) -> None:
        """`is_leaving` says whether rounds are under way that take such a replica out of ISRs."""
        self._defaults = defaults
        self._is_leaving = is_leaving

    def alter(
        self, image: MetadataImage, request: AlterPartitionRequest
    ) -> Generator[None, None, ControllerResult]:
        """Change ISRs. Each partition has its own answer.

        Raises LogbergError STALE_BROKER_EPOCH and INVALID_REQUEST, about the whole request.
        """
        registered(image, request.broker_id, request.broker_epoch)
        count = sum(len(topic.partitions) for topic in request.topics)
        if count > ALTERED_MAX:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"topics: {count} partitions; a request alters at most {ALTERED_MAX}: divide it",
            )
        rules = TopicRules(image, self._defaults)
        records: list[PartitionChangeRecord] = []
        topics: list[AlteredTopic] = []
        seen: set[PlainPartitionKey] = set()
        number = 0
        for topic in request.topics:
            answers: list[AlteredPartition] = []
            for wanted in topic.partitions:
                try:
                    key = _key(image, topic, wanted.partition_index, seen)
                    done = self._alter(image, rules, request.broker_id, key, wanted)
                except LogbergError as error:
                    answers.append(
                        AlteredPartition(wanted.partition_index, error=error_reply(error))
                    )
                else:
                    answers.append(done.answer)
                    if done.record is not None:
                        records.append(done.record)
                number += 1
                if number % _STEP == 0:
                    yield
            topics.append(AlteredTopic(tuple(answers), topic.topic_id, topic.topic_name))
        reply = AlterPartitionReply(tuple(topics))
        return ControllerResult(records, reply, reason="its leader asks for this ISR")

    def _alter(
        self,
        image: MetadataImage,
        rules: TopicRules,
        broker_id: int,
        key: PlainPartitionKey,
        wanted: PartitionToAlter,
    ) -> _Done:
        """Change one partition. Raises LogbergError."""
        partition = image.topics.partitions[key]
        _check_epochs(partition, broker_id, wanted)
        _check_isr(partition, wanted)
        _check_members(image, partition, wanted.new_isr_with_epochs, self._is_leaving)
        record = change_partition(
            *key,
            partition,
            Target(
                isr=_members(wanted),
                recovery_state=wanted.leader_recovery_state,
            ),
            acceptable=may_lead(image, partition),
            rules=rules.of(key[0], partition),
        )
        return _Done(record, _answer(partition, record, wanted.partition_index))


def _key(
    image: MetadataImage, topic: TopicToAlter, partition_index: int, seen: set[PlainPartitionKey]
) -> PlainPartitionKey:
    """Return the partition that a request names, once. Raises LogbergError."""
    if (topic.topic_id is None) == (topic.topic_name is None):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, "name the topic either by `topicId` or by `topicName`"
        )
    if topic.topic_id is not None:
        topic_id = parse_uuid_of("topicId", topic.topic_id)
        if image.topics.by_id.get(topic_id) is None:
            raise LogbergError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"topicId: there is no topic {topic.topic_id}"
            )
    else:
        named = image.topics.named(topic.topic_name or "")
        if named is None:
            raise LogbergError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topicName: there is no topic {topic.topic_name!r}",
            )
        topic_id = named.topic_id
    key = topic_id, partition_index
    if image.topics.partitions.get(key) is None:
        raise LogbergError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"partitionIndex: the topic has no partition {partition_index}",
        )
    if key in seen:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"partition {partition_index} is in the request twice"
        )
    seen.add(key)
    return key


def _check_epochs(partition: Partition, broker_id: int, wanted: PartitionToAlter) -> None:
    """Check that the request comes from the leader and is about this state."""
    leader_epoch, partition_epoch = partition.leader_epoch, partition.partition_epoch
    if wanted.leader_epoch > leader_epoch or wanted.partition_epoch > partition_epoch:
        # The broker has seen what a newer controller wrote, so this one is behind.
        raise LogbergError(
            ErrorCode.NOT_CONTROLLER,
            f"this controller knows leader epoch {leader_epoch} and partition epoch "
            f"{partition_epoch}, which is older: ask the active controller",
        )
    if wanted.leader_epoch < leader_epoch:
        raise LogbergError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"leaderEpoch: {wanted.leader_epoch} has ended, {leader_epoch} is the newest",
        )
    if broker_id != partition.leader:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"brokerId: broker {broker_id} doesn't lead the partition, {partition.leader} does",
        )
    if wanted.partition_epoch < partition_epoch:
        raise LogbergError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"partitionEpoch: the partition has changed since {wanted.partition_epoch}, it is at "
            f"{partition_epoch}: wait for the metadata and decide again",
        )


def _check_isr(partition: Partition, wanted: PartitionToAlter) -> None:
    """Check the ISR and the recovery state that the leader asks for."""
    isr = _members(wanted)
    if not isr or len(set(isr)) < len(isr) or not set(isr) <= set(partition.replicas):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"newIsrWithEpochs: {list(isr)} must name one or more of the replicas "
            f"{list(partition.replicas)}, each once",
        )
    if partition.leader not in isr:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"newIsrWithEpochs: {list(isr)} lacks the leader, {partition.leader}",
        )
    if wanted.leader_recovery_state == LeaderRecoveryState.RECOVERING:
        if len(isr) > 1:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "newIsrWithEpochs: while the leader recovers, the ISR is the leader alone",
            )
        if partition.leader_recovery_state == LeaderRecoveryState.RECOVERED:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "leaderRecoveryState: a leader that has recovered can't be recovering again",
            )


def _check_members(
    image: MetadataImage,
    partition: Partition,
    members: tuple[IsrMember, ...],
    is_leaving: IsLeaving,
) -> None:
    """Check that each member may be in an ISR (KIP-841, 903).

    A broker that leaves in rounds counts as gone from the first round on, and so does a replica
    whose log directory has failed. Otherwise its leaders could bring it back between two rounds,
    and it would have to leave again.
    """
    reasons = [reason for member in members if (reason := _ineligible(image, member))]
    for member in members:
        broker_id = member.broker_id
        directory = directory_of(partition, broker_id)
        broker = image.cluster.brokers.get(broker_id)
        if is_leaving(broker_id, directory):
            reasons.append(f"broker {broker_id} is leaving, or the log directory of this replica")
        elif broker is not None and not is_online(broker, directory):
            reasons.append(f"broker {broker_id}: the log directory of this replica has failed")
    if reasons:
        raise LogbergError(ErrorCode.INELIGIBLE_REPLICA, "newIsrWithEpochs: " + "; ".join(reasons))


def _ineligible(image: MetadataImage, member: IsrMember) -> str:
    broker = image.cluster.brokers.get(member.broker_id)
    if broker is None:
        return f"broker {member.broker_id} is not registered"
    if broker.fenced:
        return f"broker {member.broker_id} is fenced"
    if broker.in_controlled_shutdown:
        return f"broker {member.broker_id} is stopping"
    if member.broker_epoch not in (-1, broker.broker_epoch):
        return (
            f"broker {member.broker_id} has epoch {broker.broker_epoch}, not {member.broker_epoch}"
        )
    return ""


def _members(wanted: PartitionToAlter) -> tuple[int, ...]:
    return tuple(member.broker_id for member in wanted.new_isr_with_epochs)


def _answer(
    partition: Partition, record: PartitionChangeRecord | None, partition_index: int
) -> AlteredPartition:
    """Return the partition's state after the change, as replay will have it."""
    if record is None:
        record = PartitionChangeRecord(partition_index, b"")
        raised = 0
    else:
        raised = 1
    elected = record.leader != NO_LEADER_CHANGE
    answer = AlteredPartition(
        partition_index,
        leader_id=record.leader if elected else partition.leader,
        leader_epoch=partition.leader_epoch + elected,
        isr=partition.isr if record.isr is None else record.isr,
        leader_recovery_state=(
            partition.leader_recovery_state
            if record.leader_recovery_state < 0
            else record.leader_recovery_state
        ),
        partition_epoch=partition.partition_epoch + raised,
    )
    if answer.leader_id == partition.leader:
        return answer
    error = LogbergError(
        ErrorCode.NEW_LEADER_ELECTED,
        f"the change completed a reassignment, and broker {answer.leader_id} leads now",
    )
    return msgspec.structs.replace(answer, error=error_reply(error))
