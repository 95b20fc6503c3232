"""Answers Envelope (KIP-590): a broker forwards what a client asked it.

The envelope holds the client's whole request, who the client is, and its address. The answer holds
the whole response. An error of the envelope itself stands outside: NOT_CONTROLLER there lets the
broker find the new leader and send the envelope again.

Rule: the log names all three. Its principal is the broker that this connection has authenticated,
`on_behalf_of` is the user, and the client address is the user's, by the broker's word. Where
authentication is off, the client id of the broker's own requests says which broker it is, and the
log names it as what the anonymous caller acted as.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

import msgspec

from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Fields, Handler, KafkaFailure, KafkaRequest
from kafka_listener.brokers.controller_view import ControllerView
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import (
    RequestHeader,
    api_name,
    api_versions,
    decode_message,
    decode_request,
    decode_request_header,
    encode_response,
    encode_response_header,
)
from runtime.http.requests import Caller

FORWARDABLE: Final = frozenset(
    {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81}
)
"""The requests that Kafka's brokers forward, by api key."""
_BROKER: Final = "Broker:"
_PRINCIPAL_VERSION_BYTES: Final = 2
_BROKER_ID_DIGITS_MAX: Final = 10


class Envelopes:
    """Opens envelopes, and lets the other handlers answer what is inside."""

    def __init__(
        self,
        controller: ControllerView,
        handler: Callable[[int], Handler | None],
        *,
        require_authentication: bool,
    ) -> None:
        """`handler` finds the handler of an api key."""
        self._controller = controller
        self._handler = handler
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
        inner = KafkaRequest(
            header.api_key,
            header.version,
            header.client_id,
            _body(header, request.fields["RequestData"], body_at),
            caller,
            principal,
            address,
            request.listener,
        )
        seal = _Seal(header, inner.fields, answer)
        try:
            handle(inner, seal.close)
        except KafkaFailure as error:
            seal.close(
                failure(header.api_key, header.version, inner.fields, error.code, error.message)
            )

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

    def __init__(self, header: RequestHeader, fields: Fields, answer: Answer) -> None:
        self._header = header
        self._fields = fields
        self._answer = answer

    def close(self, response: Fields | bytes) -> None:
        """Answer the envelope with this response."""
        header = self._header
        if not isinstance(response, bytes):
            if _says_not_controller(response):
                self._answer({"ErrorCode": KafkaCode.NOT_CONTROLLER})
                return
            response = self._encoded(response)
        sealed = encode_response_header(header.api_key, header.version, header.correlation_id)
        self._answer({"ErrorCode": KafkaCode.NONE, "ResponseData": sealed + response})

    def _encoded(self, response: Fields) -> bytes:
        api_key, version = self._header.api_key, self._header.version
        try:
            return encode_response(api_key, version, response)
        except WireError as error:
            # The change may be made, so the client needs its own request's answer.
            unknown = failure(
                api_key, version, self._fields, KafkaCode.UNKNOWN_SERVER_ERROR, str(error)
            )
            return encode_response(api_key, version, unknown)


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


def _body(header: RequestHeader, data: bytes, body_at: int) -> Fields:
    """Return the embedded request's fields. Raises KafkaFailure."""
    if header.version not in api_versions(header.api_key):
        raise KafkaFailure(
            KafkaCode.UNSUPPORTED_VERSION,
            f"{api_name(header.api_key)} has no version {header.version} here",
        )
    try:
        return decode_request(header.api_key, header.version, data, body_at)
    except WireError as error:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, str(error)) from None


def _says_not_controller(value: object) -> bool:
    """Return whether a response, or any entry of it, has the error NOT_CONTROLLER."""
    if isinstance(value, dict):
        if value.get("ErrorCode") == KafkaCode.NOT_CONTROLLER:
            return True
        return any(map(_says_not_controller, value.values()))
    return isinstance(value, list) and any(map(_says_not_controller, value))
