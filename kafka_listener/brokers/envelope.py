"""Answers Envelope (KIP-590): a broker forwards what a client asked it.

The envelope holds the client's whole request, who the client is, and its address. The answer holds
the whole response. An error of the envelope itself stands outside: NOT_CONTROLLER there lets the
broker find the new leader and send the envelope again.

Rule: the log names all three. Its principal is the broker that this connection has authenticated,
`on_behalf_of` is the user, and the client address is the user's, by the broker's word. Where
authentication is off, the client id of the broker's own requests says which broker it is, and the
log names it as what the anonymous caller acted as.
"""

from collections.abc import Callable, Generator, Iterator
from ipaddress import ip_address
from typing import Any, Final

import msgspec

from kafka_listener.asking.failures import failure
from kafka_listener.asking.in_steps import run
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.letting_go import let_go
from kafka_listener.asking.request import (
    Answer,
    Fields,
    Handler,
    KafkaFailure,
    KafkaRequest,
    Response,
    Steps,
)
from kafka_listener.brokers.controller_view import ControllerView
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    RequestHeader,
    api_name,
    api_versions,
    decode_message,
    decode_request_header,
    decode_request_in_steps,
    encode_response_header,
    encode_response_in_steps,
)
from runtime.clock import Clock
from runtime.http.requests import Caller

FORWARDABLE: Final = frozenset(
    {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81}
)
"""The requests that Kafka's brokers forward, by api key."""
_BROKER: Final = "Broker:"
_PRINCIPAL_VERSION_BYTES: Final = 2
_BROKER_ID_DIGITS_MAX: Final = 10
_DEFECT: Final = KafkaCode.UNKNOWN_SERVER_ERROR


class Envelopes:
    """Opens envelopes, and lets the other handlers answer what is inside."""

    def __init__(
        self,
        controller: ControllerView,
        handler: Callable[[int], Handler | None],
        clock: Clock,
        *,
        require_authentication: bool,
    ) -> None:
        """`handler` finds the handler of an api key."""
        self._controller = controller
        self._handler = handler
        self._clock = clock
        self._require_authentication = require_authentication

    def handle(self, request: KafkaRequest, answer: Answer) -> None:
        """Answer Envelope, version 0. Raises KafkaFailure for an error of the envelope itself."""
        if not self._controller.active:
            raise KafkaFailure(KafkaCode.NOT_CONTROLLER)
        address = _address(request.fields["ClientHostAddress"])
        caller = self._caller(request, address)
        principal = _principal(request.fields["RequestPrincipal"])
        header, body_at = _header(request.fields["RequestData"])
        handle = self._handler(header.api_key) if header.api_key in FORWARDABLE else None
        if handle is None:
            raise KafkaFailure(
                KafkaCode.INVALID_REQUEST, f"{api_name(header.api_key)} can't be forwarded"
            )
        seal = _Seal(self._clock, header, answer)

        def failed(error: Exception) -> None:
            """Answer for the envelope. What went wrong with the request inside is sealed."""
            code = error.code if isinstance(error, KafkaFailure) else _DEFECT
            answer({"ErrorCode": code})

        def steps() -> Steps:
            fields, elements = yield from _body(header, request.fields["RequestData"], body_at)
            seal.fields, seal.elements = fields, elements
            inner = KafkaRequest(
                header.api_key,
                header.version,
                header.client_id,
                fields,
                caller,
                principal,
                address,
                request.listener,
                elements,
            )
            try:
                handle(inner, seal.close)
            except KafkaFailure as error:
                seal.close(
                    failure(header.api_key, header.version, fields, error.code, error.message)
                )

        run(self._clock, steps(), failed, at_once=True)

    def _caller(self, request: KafkaRequest, address: str) -> Caller:
        """Return the broker, at the client's address. Raises KafkaFailure for anybody else."""
        caller = msgspec.structs.replace(request.caller, address=address)
        if caller.principal.startswith(_BROKER):
            return caller
        if self._require_authentication:
            raise KafkaFailure(
                KafkaCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{caller.principal} is no broker, and only brokers forward requests",
            )
        named = request.client_id or ""
        if named.isdecimal() and named.isascii() and len(named) <= _BROKER_ID_DIGITS_MAX:
            return msgspec.structs.replace(caller, acted_as=f"{_BROKER}{int(named)}")
        return msgspec.structs.replace(caller, acted_as=f"{_BROKER}unknown")


class _Seal:
    """Puts the response into the envelope's answer."""

    def __init__(self, clock: Clock, header: RequestHeader, answer: Answer) -> None:
        self._clock = clock
        self._header = header
        self._answer = answer
        self.fields: Fields = {}
        """Those of the request inside."""
        self.elements = 0

    def close(self, response: Response) -> None:
        """Answer the envelope with this response, once it is encoded."""
        run(self._clock, self._sealed(response), self._failed, at_once=True)

    def _sealed(self, response: Response) -> Steps:
        header = self._header
        seen = _Seen()
        if isinstance(response, dict):
            body = yield from self._encoded(seen.watched(response))
        else:
            body = response if isinstance(response, bytes) else b"".join(response)
        let_go(self._clock, self.fields, self.elements)
        if seen.not_controller:
            self._answer({"ErrorCode": KafkaCode.NOT_CONTROLLER})
            return
        sealed = encode_response_header(header.api_key, header.version, header.correlation_id)
        self._answer({"ErrorCode": KafkaCode.NONE, "ResponseData": sealed + body})

    def _encoded(self, response: Fields) -> Generator[None, None, bytes]:
        api_key, version = self._header.api_key, self._header.version
        try:
            parts = yield from encode_response_in_steps(api_key, version, response)
        except Exception as error:  # noqa: BLE001 - the change may be made: the client needs its own answer
            unknown = failure(
                api_key, version, self.fields, KafkaCode.UNKNOWN_SERVER_ERROR, str(error)
            )
            parts = yield from encode_response_in_steps(api_key, version, unknown)
        return b"".join(parts)

    def _failed(self, _error: Exception) -> None:
        self._answer({"ErrorCode": _DEFECT})


class _Seen:
    """Notes while a response is encoded whether any entry of it has the error NOT_CONTROLLER."""

    def __init__(self) -> None:
        self.not_controller = False

    def watched(self, fields: Fields) -> Fields:
        """Return the same fields, which are looked at as they are read."""
        if fields.get("ErrorCode") == KafkaCode.NOT_CONTROLLER:
            self.not_controller = True
        return {name: self._value(value) for name, value in fields.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.watched(value)
        if isinstance(value, list):
            of_structs = bool(value) and isinstance(value[0], dict)
            return map(self._value, value) if of_structs else value
        return map(self._value, value) if isinstance(value, Iterator) else value


def _address(raw: bytes) -> str:
    """Return an address of 4 or 16 bytes as text. Raises KafkaFailure."""
    try:
        return str(ip_address(bytes(raw)))
    except ValueError:
        raise KafkaFailure(
            KafkaCode.INVALID_REQUEST,
            f"ClientHostAddress has {len(raw)} bytes; an address has 4 or 16",
        ) from None


def _principal(raw: bytes | None) -> str:
    """Return such as User:alice. Raises KafkaFailure."""
    try:
        data = b"" if raw is None else bytes(raw)
        version = int.from_bytes(data[:_PRINCIPAL_VERSION_BYTES], "big", signed=True)
        said = decode_message("DefaultPrincipalData", version, data[_PRINCIPAL_VERSION_BYTES:])
    except WireError as error:
        raise KafkaFailure(
            KafkaCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"RequestPrincipal can't be read: {error}; only Kafka's default principals can",
        ) from None
    return f"{said['Type']}:{said['Name']}"


def _header(data: bytes) -> tuple[RequestHeader, int]:
    """Return the embedded request's header and where its body begins. Raises KafkaFailure."""
    try:
        return decode_request_header(data)
    except WireError as error:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, str(error)) from None


def _body(
    header: RequestHeader, data: bytes, body_at: int
) -> Generator[None, None, tuple[Fields, int]]:
    """Return the embedded request's fields, and their number of elements. Raises KafkaFailure."""
    if header.version not in api_versions(header.api_key):
        raise KafkaFailure(
            KafkaCode.UNSUPPORTED_VERSION,
            f"{api_name(header.api_key)} has no version {header.version} here",
        )
    decoding = decode_request_in_steps(header.api_key, header.version, data, body_at)
    while True:
        try:
            next(decoding)
        except StopIteration as done:
            found: tuple[Fields, int] = done.value
            return found
        except WireError as error:
            raise KafkaFailure(KafkaCode.INVALID_REQUEST, str(error)) from None
        yield
