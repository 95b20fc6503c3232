"""Refuses FindCoordinator (api key 10) with a sentence.

An agent keeps no groups' offsets and no transactions. COORDINATOR_NOT_AVAILABLE would be wrong:
clients ask again for ever. INVALID_REQUEST ends their call, and they show the sentence.
"""

from typing import Final

from kafka_listener.asking.in_steps import distinct
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaRequest
from kafka_listener.clients.alive_brokers import NOBODY

FIND_COORDINATOR: Final = 10
_MANY_SINCE: Final = 4
_WHY: Final = (
    "Logberg's agents answer for the cluster's metadata only: there are no consumer groups, no "
    "share groups and no transactions here. Ask the broker software that keeps the data"
)


def refuse_coordinators(request: KafkaRequest, answer: Answer) -> None:
    """Answer one request."""
    refused: Fields = {"NodeId": NOBODY, "Host": "", "Port": NOBODY}
    refused |= {"ErrorCode": int(KafkaCode.INVALID_REQUEST)}
    if request.version > 0:
        refused["ErrorMessage"] = _WHY
    if request.version < _MANY_SINCE:
        answer(refused)
        return
    keys = distinct(request.fields["CoordinatorKeys"])
    answer({"Coordinators": ({"Key": key, **refused} for key in keys)})
