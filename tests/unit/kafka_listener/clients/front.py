"""An agent's image behind the handlers for clients, asked by bytes as a client would."""

from typing import Any

from controller.access.rights import AnyOf
from kafka_listener.asking.failures import failure
from kafka_listener.asking.request import Fields, KafkaFailure, KafkaRequest, Response
from kafka_listener.clients.agent_handlers import agent_handlers
from kafka_listener.clients.controller_handlers import controller_view_handlers
from kafka_listener.wire.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from metadata.configs.effective import OwnConfigs
from metadata.image import EMPTY, MetadataImage
from metadata.records import BrokerEndpoint, PartitionRecord, Record, TopicRecord
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World
from tests.unit.image.replaying import registration, replayed

CLUSTER_ID = "5QvMAqRrQKmUaAt0pUAHWA"
LISTENER = "CLIENTS"


def topic_id(number: int) -> bytes:
    return bytes(15) + bytes([number])


def broker(number: int, *, fenced: bool = False, listener: str = LISTENER, **more: Any) -> Record:
    point = BrokerEndpoint(listener, f"host-{number}", 9000 + number, 0)
    return registration(number, end_points=(point,), fenced=fenced, **more)


def partition(number: int, topic: int, replicas=(1, 2), leader: int = 1, **more: Any) -> Record:
    return PartitionRecord(
        number, topic_id(topic), replicas, replicas, (), (), leader, 4, 9, **more
    )


def topic(number: int, name: str) -> Record:
    return TopicRecord(name, topic_id(number))


class Front:
    """A broker with number 1; `records` are replayed into its image."""

    cluster_id = CLUSTER_ID
    node_id = 1
    leader_id = 2

    def __init__(self, *records: Record, own: dict[str, str] | None = None) -> None:
        self.world = World(1)
        process = SimulatedHost(self.world, SimulatedNetwork(self.world), 1).boot()
        self.image: MetadataImage = EMPTY
        self.why_not = ""
        self.own_configs = OwnConfigs(own or {}, self.node_id)
        self.handlers = agent_handlers(self, process.clock)
        self.of_controller = controller_view_handlers(self, process.clock)
        self.bodies: list[Response] = []
        self.replay(*records)

    def replay(self, *records: Record) -> None:
        self.image = replayed(*records, image=self.image)

    def rights(self, _request: KafkaRequest) -> None:
        """Return that every client may do everything; `test_agent_rights` has others."""

    def refused_part(self, _request: KafkaRequest, _need: AnyOf) -> None:
        """Refuse nothing."""

    def refusal(self) -> str:
        return self.why_not

    def begin(self, api_key: int, version: int, fields: Fields) -> None:
        """Ask as a client that sends these fields; the answer comes into `bodies`."""
        sent = decode_request(api_key, version, encode_request(api_key, version, fields))
        request = KafkaRequest(api_key, version, "a-client", sent, listener=LISTENER)
        try:
            self.handlers[api_key](request, self.bodies.append)
        except KafkaFailure as refused:
            self.bodies.append(failure(api_key, version, sent, refused.code, refused.message))

    def ask(self, api_key: int, version: int, fields: Fields) -> Fields:
        """The answer that a client decodes."""
        self.bodies.clear()
        self.begin(api_key, version, fields)
        self.world.run_for(1.0)
        (body,) = self.bodies
        if isinstance(body, tuple):
            encoded = b"".join(body)
        else:
            encoded = body if isinstance(body, bytes) else encode_response(api_key, version, body)
        return decode_response(api_key, version, encoded)
