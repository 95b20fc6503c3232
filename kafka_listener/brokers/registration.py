"""Answers BrokerRegistration (KIP-631): a Kafka broker's process begins.

Rule: the answer to a broker that can't work has only a number, and the broker tries again for a
minute. So the reason goes to this controller's log, once for each broker and reason.

A Kafka broker never reads a record that is only ours, because the projection shows it a NoOp. So
every level of `logberg.version` suits it, and its registration says so.
"""

from typing import Final

from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.refused_brokers import RefusedBrokers, id_of_a_controller
from kafka_listener.asking.request import Answer, Fields, KafkaRequest
from kafka_listener.brokers.broker_contact import BrokerContact
from kafka_listener.brokers.controller_view import ControllerView
from metadata.errors import ErrorCode, LogbergError
from metadata.features import LOGBERG_VERSION, METADATA_VERSION
from metadata.image import MetadataImage
from metadata.messages import Endpoint, MetadataFetchRequest, Registration, SupportedFeature
from metadata.messages.fetch import MetadataFetchReply
from metadata.uuids import uuid_text

_ANY_LEVEL: Final = SupportedFeature(LOGBERG_VERSION, 0, 2**15 - 1)


class Registrations:
    """Registers Kafka's brokers."""

    def __init__(
        self, controller: ControllerView, contact: BrokerContact, refused: RefusedBrokers
    ) -> None:
        self._controller = controller
        self._contact = contact
        self._refused = refused

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer BrokerRegistration, versions 0 to 4."""
        if not self._controller.active:
            answer(_refused(KafkaCode.NOT_CONTROLLER))
            return
        broker_id = request.fields["BrokerId"]

        def done(outcome: MetadataFetchReply | LogbergError) -> None:
            if isinstance(outcome, LogbergError):
                self._tell(broker_id, outcome)
                answer(_refused(kafka_code(outcome)))
                return
            self._refused.works(broker_id)
            answer({"ErrorCode": 0, "BrokerEpoch": outcome.broker_epoch})

        try:
            _check_can_work(self._controller.image, request.fields)
            message = _message(request.fields)
        except LogbergError as error:
            done(error)
            return
        self._contact.send(request, message, done)

    def _tell(self, broker_id: int, error: LogbergError) -> None:
        # Of what passes by itself only this needs a person: two processes may have one node id.
        if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION or not error.code.retriable:
            self._refused.tell(broker_id, str(error))


def _check_can_work(image: MetadataImage, fields: Fields) -> None:
    """Refuse what would loop or die later. Raises LogbergError, which says what to change."""
    broker_id = fields["BrokerId"]
    if METADATA_VERSION not in image.features.levels:
        raise LogbergError(
            ErrorCode.UNSUPPORTED_VERSION,
            "the log names no metadata.version, and Kafka's brokers can't read such a log; set it "
            f"with `logberg features upgrade {METADATA_VERSION}=25`",
        )
    votes = any(voter.voter_id == broker_id for voter in image.quorum.voters)
    if votes or broker_id in image.cluster.controllers:
        raise LogbergError(
            ErrorCode.INVALID_REGISTRATION,
            id_of_a_controller(broker_id),
        )
    if fields["IsMigratingZkBroker"]:
        raise LogbergError(
            ErrorCode.INVALID_REGISTRATION,
            f"broker {broker_id} migrates from ZooKeeper, which is not supported; finish the "
            "migration with Kafka's own controllers",
        )


def _message(fields: Fields) -> MetadataFetchRequest:
    features = [
        SupportedFeature(f["Name"], f["MinSupportedVersion"], f["MaxSupportedVersion"])
        for f in fields["Features"]
        if f["Name"] != LOGBERG_VERSION
    ]
    return MetadataFetchRequest(
        cluster_id=fields["ClusterId"],
        broker_id=fields["BrokerId"],
        incarnation_id=uuid_text(fields["IncarnationId"]),
        registration=Registration(
            endpoints=tuple(
                Endpoint(e["Name"], e["Host"], e["Port"], e["SecurityProtocol"])
                for e in fields["Listeners"]
            ),
            features=(*features, _ANY_LEVEL),
            rack=fields["Rack"],
            log_dirs=tuple(map(uuid_text, fields["LogDirs"])),
            previous_broker_epoch=fields["PreviousBrokerEpoch"],
        ),
    )


def _refused(code: int) -> Fields:
    return {"ErrorCode": code, "BrokerEpoch": -1}
