"""Answers AlterPartition (KIP-497, 841, 903): the leader of partitions changes their ISRs.

Rule: a broker sends all its pending changes at once, which may be more than one of our requests
takes. They are asked in turns, and the answer has them in the order of the request. Once a turn
has changed something, a later turn's error stands at its own partitions.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaRequest
from kafka_listener.asking.turns import Turns
from metadata.errors import LogbergError
from metadata.messages import AlterPartitionReply, AlterPartitionRequest
from metadata.messages.partitions import (
    AlteredPartition,
    IsrMember,
    PartitionToAlter,
    TopicToAlter,
)
from metadata.uuids import uuid_text

_AT_ONCE: Final = 150
"""Partitions in one of our requests: far below what one MessagePack body may hold."""
_NAMES_EPOCHS_FROM: Final = 3
_Turn = list[tuple[bytes, list[Fields]]]
"""Topic ids with their partitions."""


class PartitionChanges:
    """Changes ISRs for Kafka's brokers."""

    def __init__(self, asking: Asking, cluster_id: str) -> None:
        self._asking = asking
        self._cluster_id = cluster_id

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer AlterPartition, versions 2 and 3."""
        rest = _turns(request.fields["Topics"])
        topics: list[Fields] = []

        def ask() -> None:
            turn = next(rest, None)
            if turn is None:
                answer({"ErrorCode": 0, "Topics": topics})
                return
            self._ask(request, turn, lambda outcome: done(turn, outcome))

        def done(turn: _Turn, outcome: AlterPartitionReply | LogbergError) -> None:
            if not isinstance(outcome, LogbergError):
                for (topic_id, _), altered in zip(turn, outcome.topics, strict=True):
                    partitions = [_partition(each) for each in altered.partitions]
                    topics.append({"TopicId": topic_id, "Partitions": partitions})
                turns.next()
                return
            code = kafka_code(outcome)
            if not topics:
                answer({"ErrorCode": code, "Topics": []})
                return
            failed = (_failed(each, code) for left in chain((turn,), rest) for each in left)
            answer({"ErrorCode": 0, "Topics": chain(topics, failed)})

        def failed(error: Exception) -> None:
            code = kafka_code(self._asking.defect_of(request, error))
            answer({"ErrorCode": code, "Topics": []})

        turns = Turns(self._asking.clock, ask, failed)
        turns.next()

    def _ask(
        self,
        request: KafkaRequest,
        turn: _Turn,
        then: Callable[[AlterPartitionReply | LogbergError], None],
    ) -> None:
        message = AlterPartitionRequest(
            cluster_id=self._cluster_id,
            broker_id=request.fields["BrokerId"],
            broker_epoch=request.fields["BrokerEpoch"],
            topics=tuple(_topic(request.version, *each) for each in turn),
        )
        self._asking.change(
            request, "POST", "/v1/partitions/alter", message, AlterPartitionReply, then
        )


def _turns(topics: list[Fields]) -> Iterator[_Turn]:
    """Cut the topics into requests of at most `_AT_ONCE` partitions."""
    turn: _Turn = []
    room = _AT_ONCE
    for topic in topics:
        rest = topic["Partitions"]
        while rest:
            turn.append((topic["TopicId"], rest[:room]))
            rest, room = rest[room:], room - len(rest[:room])
            if room == 0:
                yield turn
                turn, room = [], _AT_ONCE
    if turn:
        yield turn


def _topic(version: int, topic_id: bytes, partitions: list[Fields]) -> TopicToAlter:
    return TopicToAlter(
        topic_id=uuid_text(topic_id),
        partitions=tuple(
            PartitionToAlter(
                partition_index=each["PartitionIndex"],
                leader_epoch=each["LeaderEpoch"],
                partition_epoch=each["PartitionEpoch"],
                new_isr_with_epochs=tuple(_isr(version, each)),
                leader_recovery_state=each["LeaderRecoveryState"],
            )
            for each in partitions
        ),
    )


def _isr(version: int, partition: Fields) -> Iterator[IsrMember]:
    if version >= _NAMES_EPOCHS_FROM:
        for member in partition["NewIsrWithEpochs"]:
            yield IsrMember(member["BrokerId"], member["BrokerEpoch"])
    else:
        yield from map(IsrMember, partition["NewIsr"])


def _partition(altered: AlteredPartition) -> Fields:
    """Return a partition as it is committed, or its error."""
    if altered.error is not None:
        code = kafka_code(altered.error)
        return {"PartitionIndex": altered.partition_index, "ErrorCode": code}
    return {
        "PartitionIndex": altered.partition_index,
        "ErrorCode": KafkaCode.NONE,
        "LeaderId": altered.leader_id,
        "LeaderEpoch": altered.leader_epoch,
        "Isr": list(altered.isr),
        "LeaderRecoveryState": altered.leader_recovery_state,
        "PartitionEpoch": altered.partition_epoch,
    }


def _failed(topic: tuple[bytes, list[Fields]], code: int) -> Fields:
    topic_id, partitions = topic
    return {
        "TopicId": topic_id,
        "Partitions": (
            {"PartitionIndex": each["PartitionIndex"], "ErrorCode": code} for each in partitions
        ),
    }
