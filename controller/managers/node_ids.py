"""Whether brokers and controllers share one space of node ids, as in Kafka (ADR 0075).

Rule: they share it from the moment at which the log says that a controller listens for Kafka. From
then on no node gets an id that a node of the other kind has, whatever kind of broker it is. An id
that both kinds had before stays with both: their processes may register again.
"""

from controller.managers.voter_addresses import listens_for_kafka
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.records import RegisterControllerRecord


def ids_are_shared(image: MetadataImage) -> bool:
    """Return whether the log says that a controller listens for Kafka."""
    return any(listens_for_kafka(each) for each in image.cluster.controllers.values())


def check_broker_id(image: MetadataImage, broker_id: int) -> None:
    """Refuse a new broker with a controller's id. Raises LogbergError INVALID_REGISTRATION."""
    if image.cluster.brokers.get(broker_id) is not None or not ids_are_shared(image):
        return
    votes = any(voter.voter_id == broker_id for voter in image.quorum.voters)
    if votes or image.cluster.controllers.get(broker_id) is not None:
        raise LogbergError(
            ErrorCode.INVALID_REGISTRATION,
            f"brokerId: node id {broker_id} belongs to a controller, and where controllers listen "
            "for Kafka, brokers and controllers share one space of ids; give the broker another id",
            {"field": "brokerId"},
        )


def check_controller_id(image: MetadataImage, registration: RegisterControllerRecord) -> None:
    """Refuse a new controller with a broker's id. Raises LogbergError INVALID_REGISTRATION."""
    node_id = registration.controller_id
    shared = ids_are_shared(image) or listens_for_kafka(registration)
    if shared and image.cluster.brokers.get(node_id) is not None:
        raise LogbergError(
            ErrorCode.INVALID_REGISTRATION,
            f"node id {node_id} belongs to a broker, and where controllers listen for Kafka, "
            "brokers and controllers share one space of ids; give the controller another id, or "
            f"unregister the broker (`logberg brokers unregister {node_id}`)",
        )
