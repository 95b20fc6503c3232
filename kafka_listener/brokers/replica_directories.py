"""Answers AssignReplicasToDirs (KIP-858): a broker says in which directories its replicas lie.

Rule: what is too much for one of our requests is asked in turns; the answer has the shape of the
request.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, repeat
from typing import Final

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.request import Answer, Fields, KafkaRequest
from kafka_listener.asking.turns import Turns
from metadata.errors import LogbergError
from metadata.messages import AssignReplicasReply, AssignReplicasRequest
from metadata.messages.directories import ReplicaInDirectory
from metadata.uuids import uuid_text

_AT_ONCE: Final = 500
"""Replicas in one of our requests: far below what one MessagePack body may hold."""


class ReplicaPlaces:
    """Notes for Kafka's brokers where replicas lie."""

    def __init__(self, asking: Asking, cluster_id: str) -> None:
        self._asking = asking
        self._cluster_id = cluster_id

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer AssignReplicasToDirs, version 0."""
        replicas = _replicas(request.fields)
        codes: list[int] = []
        turn = tuple(islice(replicas, _AT_ONCE))
        if not turn:
            answer(_answer(request.fields, ()))
            return

        def ask() -> None:
            self._ask(request, turn, done)

        def done(outcome: AssignReplicasReply | LogbergError) -> None:
            nonlocal turn
            if isinstance(outcome, LogbergError):
                code = kafka_code(outcome)
                if not codes:
                    answer({"ErrorCode": code, "Directories": []})
                else:
                    answer(_answer(request.fields, chain(codes, repeat(code))))
                return
            codes.extend(
                0 if each.error is None else kafka_code(each.error) for each in outcome.replicas
            )
            turn = tuple(islice(replicas, _AT_ONCE))
            if turn:
                turns.next()
            else:
                answer(_answer(request.fields, codes))

        turns = Turns(
            self._asking.clock, ask, lambda error: done(self._asking.defect_of(request, error))
        )
        turns.next()

    def _ask(
        self,
        request: KafkaRequest,
        turn: tuple[ReplicaInDirectory, ...],
        then: Callable[[AssignReplicasReply | LogbergError], None],
    ) -> None:
        message = AssignReplicasRequest(
            cluster_id=self._cluster_id,
            broker_epoch=request.fields["BrokerEpoch"],
            replicas=turn,
        )
        path = f"/v1/brokers/{request.fields['BrokerId']}/directories"
        self._asking.change(request, "POST", path, message, AssignReplicasReply, then)


def _replicas(fields: Fields) -> Iterator[ReplicaInDirectory]:
    for directory in fields["Directories"]:
        for topic in directory["Topics"]:
            for each in topic["Partitions"]:
                yield ReplicaInDirectory(
                    uuid_text(topic["TopicId"]), each["PartitionIndex"], uuid_text(directory["Id"])
                )


def _answer(fields: Fields, codes: Iterable[int]) -> Fields:
    """Return the answer with a code for each replica, in the order of the request.

    Its lists take their codes while they are encoded, one after another.
    """
    left = iter(codes)
    return {
        "ErrorCode": 0,
        "Directories": (
            {
                "Id": directory["Id"],
                "Topics": (
                    {
                        "TopicId": topic["TopicId"],
                        "Partitions": (
                            {"PartitionIndex": each["PartitionIndex"], "ErrorCode": next(left)}
                            for each in topic["Partitions"]
                        ),
                    }
                    for topic in directory["Topics"]
                ),
            }
            for directory in fields["Directories"]
        ),
    }
