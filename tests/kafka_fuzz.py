"""Kafka's listeners without a socket, and frames for them that are nearly right.

`FuzzedListener` is a controller's or an agent's listener in front of a real controller with a
simulated disk and clock. `random_frames` draws requests whose words mostly exist, and damages some
of their bytes.

Rule: all dice come in, so that a run can be repeated.
"""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from controller.access.rights import AnyOf
from controller.config import ControllerConfig
from controller.controller import Controller
from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.asking.asking import Asking
from kafka_listener.asking.request import Answer, Handler, KafkaRequest
from kafka_listener.clients.agent_handlers import agent_handlers
from kafka_listener.listener import ControllerListener
from kafka_listener.serving.image_features import feature_versions
from kafka_listener.serving.logins import Logins
from kafka_listener.serving.service import KafkaLimits, KafkaService
from kafka_listener.serving.session import KafkaSession
from kafka_listener.wire.messages import (
    RequestHeader,
    api_name,
    api_versions,
    encode_message,
    encode_request,
    encode_request_header,
    message_schema,
)
from kafka_listener.wire.schema import Fields, FieldSchema, StructSchema
from metadata.configs.effective import OwnConfigs
from metadata.image import MetadataImage
from metadata.sealing import ClusterKey
from runtime.clock import Clock
from runtime.http.requests import Caller
from runtime.sessions.interface import PeerOnWire
from runtime.sockets.byte_budget import ByteBudget
from tests.unit.controller.cluster import CLUSTER_ID, Cluster
from tests.unit.kafka_listener.serving_kit import Credentials, NotedRefusals

LISTENER: Final = "CONTROLLER"
ENVELOPE: Final = 58


class FuzzedListener:
    """One listener with its controller; sessions are opened by `connect`."""

    def __init__(self, *, of_agent: bool = False, limits: KafkaLimits | None = None) -> None:
        self.defects: list[Exception] = []
        self.begun = 0
        """Requests that came to a handler."""
        self._of_agent = of_agent
        self._handlers: Mapping[int, Handler] = {}
        self.cluster = Cluster(
            nodes=1,
            on_made=self._made,
            initial_features={"metadata.version": 30},
            kafka_address=(LISTENER, "localhost", 9093),
            cluster_key=ClusterKey(bytes(32)),
        )
        self.refusals = NotedRefusals()
        self.budget = ByteBudget()
        self.service = KafkaService(
            self._counted(self._handlers),
            lambda: feature_versions(self.controller.image),
            Logins(
                lambda _uri, _token, _uid, address: Caller(address=address),
                Credentials(),
                Random(1),
                mechanisms=("SCRAM-SHA-256",),
                required=False,
            ),
            listener=LISTENER,
            clock=self.clock,
            refusals=self.refusals,
            budget=self.budget,
            limits=limits,
            on_defect=lambda _request, error: self.defects.append(error),
        )

    def _made(
        self, controller: Controller, config: ControllerConfig, clock: Clock, disk: Any, log: Any
    ) -> None:
        """Make the handlers, before the controller starts."""

        def on_defect(_request: KafkaRequest, error: Exception) -> None:
            self.defects.append(error)

        self.controller, self.clock = controller, clock
        if self._of_agent:
            asking = Asking(controller.handle, clock, on_defect)
            source = _AgentSource(config, lambda: controller.image)
            self._handlers = {**admin_handlers(asking), **agent_handlers(source, clock)}
        else:
            listener = ControllerListener(
                controller, config, clock=clock, disk=disk, log=log, on_defect=on_defect
            )
            self._handlers = listener.handlers

    def _counted(self, handlers: Mapping[int, Handler]) -> Mapping[int, Handler]:
        def counted(handler: Handler) -> Handler:
            def handle(request: KafkaRequest, answer: Answer) -> None:
                self.begun += 1
                handler(request, answer)

            return handle

        return {key: counted(handler) for key, handler in handlers.items()}

    def connect(self) -> "FuzzedConnection":
        """Open a connection."""
        return FuzzedConnection(self)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.cluster.run(seconds)

    def inside(self, act: Callable[[], None]) -> None:
        """Call in the controller's process."""
        self.cluster.processes[1].run(act)


class _AgentSource:
    """An agent whose image is always the controller's."""

    cluster_id = CLUSTER_ID
    node_id = 1

    def __init__(self, config: ControllerConfig, image: Callable[[], MetadataImage]) -> None:
        self.own_configs = OwnConfigs(config.configs, self.node_id)
        self._image = image

    @property
    def image(self) -> MetadataImage:
        return self._image()

    def rights(self, _request: KafkaRequest) -> None:
        """Return that every client may do everything."""

    def refused_part(self, _request: KafkaRequest, _need: AnyOf) -> None:
        """Refuse nothing."""

    def refusal(self) -> str:
        return ""


class FuzzedConnection:
    """The other end of one session."""

    def __init__(self, listener: FuzzedListener) -> None:
        self._listener = listener
        self.written = bytearray()
        self.closed = False
        self.session: KafkaSession | None = None
        listener.inside(self._open)

    def _open(self) -> None:
        self.session = KafkaSession(self._listener.service, self, PeerOnWire("10.0.0.7"))

    def send(self, data: bytes, piece: int = 0) -> None:
        """Send bytes, in pieces of so many."""
        size = piece or len(data) or 1
        for start in range(0, len(data), size):
            part = data[start : start + size]
            assert self.session is not None
            self._listener.inside(lambda part=part: self.session.received(part))

    @property
    def at_rest(self) -> bool:
        """No request is under way, none has arrived in part, and the connection goes on."""
        assert self.session is not None
        session = self.session
        return not (session._ended or session._waits() or len(session._frames))

    def hang_up(self) -> None:
        """End the connection from here."""
        assert self.session is not None
        self._listener.inside(self.session.lost)

    def frames(self) -> list[bytes]:
        """Return the answers, without their lengths. Raises AssertionError for half an answer."""
        found, rest = [], bytes(self.written)
        while rest:
            size = int.from_bytes(rest[:4], "big")
            assert len(rest) >= 4 + size, "half an answer was written"
            found.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        return found

    # -- what the session sees

    def write(self, data: bytes) -> None:
        assert not self.closed, "written after the end"
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def read_on(self, wanted: bool) -> None:
        pass

    def known(self) -> None:
        pass

    def busy(self, is_busy: bool) -> None:
        pass


class Frame(NamedTuple):
    """One request as bytes with its length before it, and what it was before it was damaged."""

    api_key: int
    version: int
    correlation_id: int
    data: bytes
    sound: bool


def served(service: KafkaService) -> list[tuple[int, int]]:
    """Return every api key in every version that a listener serves."""
    return [
        (key, version)
        for key, found in service.served.items()
        for version in range(found.first, found.last + 1)
    ]


def random_frames(
    random: Random, asked: list[tuple[int, int]], image: MetadataImage, count: int
) -> Iterator[Frame]:
    """Draw requests: some are sound, the others are damaged in one or two places."""
    for correlation_id in range(1, count + 1):
        key, version = random.choice(asked)
        content = _request(random, key, version, correlation_id, image)
        sound = random.random() < 0.5
        if not sound:
            for _ in range(random.choice((1, 1, 2))):
                content = random.choice(_DAMAGES)(random, content)
        size = len(content)
        if not sound and random.random() < 0.1:
            size = random.choice((size - 1, size + 1, 0, -1, 2**31 - 1))
        data = size.to_bytes(4, "big", signed=True) + content
        yield Frame(key, version, correlation_id, data, sound)


def _request(
    random: Random, key: int, version: int, correlation_id: int, image: MetadataImage
) -> bytes:
    client = random.choice((None, "", "1", "101", "a-client", "ü" * 300, "\r\nx: y"))
    head = encode_request_header(RequestHeader(key, version, correlation_id, client))
    fields = Words(random, image).message(f"{api_name(key)}Request", version)
    if key == ENVELOPE and random.random() < 0.9:
        inner = random.choice((19, 20, 37, 44, 45, 46, 43, 30, 31, 49, 51, 57, 55, 64, 1, ENVELOPE))
        inner_version = random.choice(tuple(_range(inner)))
        fields["RequestData"] = _request(random, inner, inner_version, 9, image)
        fields["RequestPrincipal"] = b"\0\0" + encode_message(
            "DefaultPrincipalData",
            0,
            {"Type": "User", "Name": random.choice(("al", "", "é", "a\nb", "x" * 9000))},
        )
        fields["ClientHostAddress"] = random.choice((bytes(4), bytes(16), b"\x0a\0\0\1", b"123"))
    return head + encode_request(key, version, fields)


def _range(key: int) -> range:
    found = api_versions(key)
    return range(found.first, found.last + 1)


class Words:
    """Draws messages of which many words and numbers exist in an image."""

    def __init__(self, random: Random, image: MetadataImage) -> None:
        self._random = random
        self._texts = (
            *("orders", "parts", "", "__consumer_offsets", "a" * 300, "1", "101", "*"),
            *("User:al", "al", "retention.ms", "cleanup.policy", "7", "metadata.version"),
            *("user", "client-id", "ip", "producer_byte_rate", "PLAIN", "\0", "../x", "é\n"),
        )
        self._ids = [*image.topics.by_id, bytes(16), b"x" * 16]

    def message(self, name: str, version: int) -> Fields:
        """Draw the fields of a message."""
        return self._struct(message_schema(name).struct, version)

    def _struct(self, struct: StructSchema, version: int) -> Fields:
        return {
            field.name: self._value(field, version)
            for field in struct.fields
            if version in field.versions
        }

    def _value(self, field: FieldSchema, version: int) -> Any:
        if version in field.nullable and self._random.random() < 0.2:
            return None
        if not field.array:
            return self._one(field, version)
        count = self._random.choice((0, 1, 1, 1, 2, 3))
        found = [self._one(field, version) for _ in range(count)]
        return found * self._random.choice((1, 1, 1, 1, 1, 2, 40))

    def _one(self, field: FieldSchema, version: int) -> Any:
        random = self._random
        if field.struct is not None:
            return self._struct(field.struct, version)
        if field.name == "ClusterId" and random.random() < 0.9:
            return CLUSTER_ID
        match field.type:
            case "string":
                return random.choice(self._texts)
            case "bytes" | "records":
                return random.choice((b"", b"x", random.randbytes(40)))
            case "uuid":
                return random.choice(self._ids)
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice((0.0, 1.0, -1.0, 1e308, float("inf"), float("nan")))
            case kind:
                bits = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}.get(kind, 15)
                low = 0 if kind.startswith("u") else -(2**bits)
                near = random.choice((0, 0, 1, 1, 2, 3, 4, 101, 2, 1))
                return random.choice((near, near, near, near, low, 2**bits - 1, low or 5))


def _flip(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) or 1)
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _number(random: Random, data: bytes) -> bytes:
    """Write a number of two or four bytes that breaks a length, a version or a key."""
    at = random.randrange(len(data) or 1)
    some = random.choice((b"\xff\xff", b"\x7f\xff", b"\x7f\xff\xff\xff", b"\xff" * 4, b"\0\0\0\0"))
    return data[:at] + some + data[at + len(some) :]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice((b"\0", b"\xff" * 9, random.randbytes(5))) + data[at:]


def _repeat(random: Random, data: bytes) -> bytes:
    """Write a part many times, as an array that its count doesn't fit."""
    at = random.randrange(len(data) or 1)
    end = at + random.choice((1, 2, 4, 17))
    return data[:end] + data[at:end] * random.choice((1, 30, 4_000)) + data[end:]


def _huge_count(random: Random, data: bytes) -> bytes:
    """Let an array begin that claims to be huge, with bytes that could be its elements."""
    at = random.randrange(8, len(data) + 1) if len(data) > 8 else len(data)
    count = random.choice((b"\xff\xff\xff\xff\x0f", b"\x00\x7f\xff\xff", b"\x81\x80\x08"))
    return data[:at] + count + random.choice((b"\1", b"\0", b"\2")) * 30_000


_DAMAGES: Final = (_flip, _flip, _number, _number, _cut, _insert, _repeat, _huge_count)
