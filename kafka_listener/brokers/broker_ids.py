"""Answers AllocateProducerIds (KIP-730) and UnregisterBroker (KIP-631)."""

from kafka_listener.asking.asking import Asking
from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.request import Answer, KafkaRequest
from metadata.errors import LogbergError
from metadata.messages import (
    AllocateProducerIdsReply,
    AllocateProducerIdsRequest,
    UnregisterBrokerReply,
)


class BrokerIds:
    """Hands out blocks of producer ids, and forgets brokers."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def allocate(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer AllocateProducerIds, version 0."""

        def done(outcome: AllocateProducerIdsReply | LogbergError) -> None:
            if isinstance(outcome, LogbergError):
                answer({"ErrorCode": kafka_code(outcome)})
                return
            answer(
                {
                    "ErrorCode": 0,
                    "ProducerIdStart": outcome.producer_id_start,
                    "ProducerIdLen": outcome.producer_id_len,
                }
            )

        fields = request.fields
        message = AllocateProducerIdsRequest(fields["BrokerId"], fields["BrokerEpoch"])
        self._asking.change(
            request, "POST", "/v1/producer-ids", message, AllocateProducerIdsReply, done
        )

    def unregister(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer UnregisterBroker, version 0.

        A broker that holds the only replica of something is refused. `logberg brokers unregister`
        can force that; Kafka's request has no place for it.
        """

        def done(outcome: UnregisterBrokerReply | LogbergError) -> None:
            if isinstance(outcome, LogbergError):
                answer({"ErrorCode": kafka_code(outcome), "ErrorMessage": str(outcome)})
                return
            answer({"ErrorCode": 0, "ErrorMessage": None})

        path = f"/v1/brokers/{request.fields['BrokerId']}"
        self._asking.change(request, "DELETE", path, None, UnregisterBrokerReply, done)
