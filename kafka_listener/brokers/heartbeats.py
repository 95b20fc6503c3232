"""Answers BrokerHeartbeat (KIP-631).

Rule: the answer shows what is committed. A heartbeat that changes the broker's own state waits for
that change, as in Kafka. One that asks to stop waits a moment for the permission. All others are
answered at once.

Kafka names the last offset that a broker has applied, and we name the end: one more. A heartbeat
names no incarnation. It takes that of the registration whose epoch it names, and the route refuses
another epoch.
"""

from typing import Final

from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, KafkaRequest
from kafka_listener.brokers.broker_contact import BrokerContact
from kafka_listener.brokers.controller_view import ControllerView
from metadata.errors import LogbergError
from metadata.image import BrokerRegistration
from metadata.messages import MetadataFetchRequest, SeenState, WantedState
from metadata.messages.fetch import MetadataFetchReply
from metadata.uuids import uuid_text

_CHANGE_WAIT_MS: Final = 1_000
"""The longest wait for the commit of the broker's own change, or for the permission to stop."""


class BrokerHeartbeats:
    """Takes heartbeats of Kafka's brokers."""

    def __init__(self, controller: ControllerView, contact: BrokerContact) -> None:
        self._controller = controller
        self._contact = contact

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer BrokerHeartbeat, versions 0 to 2."""
        fields = request.fields
        if not self._controller.active:
            answer({"ErrorCode": KafkaCode.NOT_CONTROLLER})
            return
        broker = self._controller.image.cluster.brokers.get(fields["BrokerId"])
        if broker is None or broker.broker_epoch != fields["BrokerEpoch"]:
            answer({"ErrorCode": KafkaCode.STALE_BROKER_EPOCH})
            return

        def done(outcome: MetadataFetchReply | LogbergError) -> None:
            if isinstance(outcome, LogbergError):
                answer({"ErrorCode": kafka_code(outcome)})
                return
            answer(
                {
                    "ErrorCode": 0,
                    "IsCaughtUp": outcome.caught_up,
                    "IsFenced": outcome.state is SeenState.FENCED,
                    "ShouldShutDown": outcome.may_stop,
                }
            )

        self._contact.send(request, _message(self._contact.cluster_id, broker, fields), done)


def _message(cluster_id: str, broker: BrokerRegistration, fields: Fields) -> MetadataFetchRequest:
    wanted = WantedState.ONLINE
    if fields["WantShutDown"]:
        wanted = WantedState.STOPPING
    elif fields["WantFence"]:
        wanted = WantedState.FENCED
    cordoned = fields["CordonedLogDirs"]
    return MetadataFetchRequest(
        cluster_id=cluster_id,
        broker_id=broker.broker_id,
        incarnation_id=uuid_text(broker.incarnation_id),
        broker_epoch=broker.broker_epoch,
        applied_offset=max(0, fields["CurrentMetadataOffset"] + 1),
        wanted_state=wanted,
        max_wait_ms=_CHANGE_WAIT_MS if _changes(broker, wanted, fields) else 0,
        offline_log_dirs=tuple(map(uuid_text, fields["OfflineLogDirs"])),
        cordoned_log_dirs=None if cordoned is None else tuple(map(uuid_text, cordoned)),
    )


def _changes(broker: BrokerRegistration, wanted: WantedState, fields: Fields) -> bool:
    """Return whether a heartbeat may change the broker's state now."""
    if wanted is WantedState.ONLINE:
        caught_up = fields["CurrentMetadataOffset"] >= broker.broker_epoch
        return broker.fenced and caught_up and not broker.in_controlled_shutdown
    return not broker.fenced if wanted is WantedState.STOPPING else broker.active
