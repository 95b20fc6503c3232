"""The handlers of what Kafka's brokers ask, by api key.

ControllerRegistration (70) is not here: Kafka's own controllers send it, and they can't join
Logberg's quorum. Ours register themselves.
"""

from collections.abc import Callable, Mapping

from kafka_listener.asking.asking import Asking, AskRoute
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import Handler
from kafka_listener.brokers.broker_contact import BrokerContact
from kafka_listener.brokers.broker_ids import BrokerIds
from kafka_listener.brokers.controller_view import ControllerView
from kafka_listener.brokers.envelope import Envelopes
from kafka_listener.brokers.heartbeats import BrokerHeartbeats
from kafka_listener.brokers.partition_changes import PartitionChanges
from kafka_listener.brokers.registration import Registrations
from kafka_listener.brokers.replica_directories import ReplicaPlaces


def broker_handlers(
    controller: ControllerView,
    ask: AskRoute,
    asking: Asking,
    handler: Callable[[int], Handler | None],
    refused: RefusedBrokers,
    *,
    cluster_id: str,
    require_authentication: bool,
) -> Mapping[int, Handler]:
    """Return the handlers. `ask` is `controller.handle`; `handler` finds any of the listener's."""
    contact = BrokerContact(controller, ask, cluster_id)
    ids = BrokerIds(asking)
    envelopes = Envelopes(
        controller, handler, asking.clock, require_authentication=require_authentication
    )
    return {
        56: PartitionChanges(asking, cluster_id).handle,
        58: envelopes.handle,
        62: Registrations(controller, contact, refused).handle,
        63: BrokerHeartbeats(controller, contact).handle,
        64: ids.unregister,
        67: ids.allocate,
        73: ReplicaPlaces(asking, cluster_id).handle,
    }
