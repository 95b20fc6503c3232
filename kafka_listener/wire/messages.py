"""Kafka's messages to bytes and back, by the schemas of `kafka_listener/schemas`.

Rule: whatever the bytes are, what is raised is a WireError with one sentence. Bytes that are left
over are an error, too, except in a request: librdkafka 2.16 sends three too many with Metadata 13,
and Kafka passes over them.

Encoding fills in the schema's default for a field that is missing and refuses a name that the
schema hasn't. A field that the version lacks is left out if it is ignorable or has its default;
otherwise it is an error, as in Kafka. Decoding returns all fields of the schema; those that the
version lacks have their defaults.

A request or a response that may be long is read and written in steps, with the same result. A
response's arrays of structs, strings and uuids may be any iterables.
"""

import struct
from collections.abc import Generator, Mapping
from functools import cache
from typing import Final, NamedTuple

from kafka_listener.schemas import read_schemas
from kafka_listener.wire.body_parts import BodyParts, Parts
from kafka_listener.wire.decoding import ValueDecoder, compile_decoder
from kafka_listener.wire.encoding import StructEncoder, compile_encoder
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.schema import (
    ELEMENTS_MAX,
    Fields,
    MessageSchema,
    VersionRange,
    parse_message,
)
from kafka_listener.wire.stepped_decoding import SteppedDecoder, compile_stepped_decoder
from kafka_listener.wire.stepped_encoding import SteppedEncoder, compile_stepped_encoder
from kafka_listener.wire.varints import decode_uvarint, encode_uvarint

API_VERSIONS: Final = 18
RECORD_FRAME_VERSION: Final = 1
_HEADER: Final = struct.Struct(">hhi")
_HEADER_TAGS_MAX: Final = 100
_ANY_NUMBER: Final = 2**62
_UNREADABLE: Final = (struct.error, IndexError, UnicodeDecodeError, WireError)
_UNWRITABLE: Final = (struct.error, TypeError, AttributeError, ValueError)


class RequestHeader(NamedTuple):
    """What stands before a request's body."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


def api_name(api_key: int) -> str:
    """Return a request's name without "Request"; for a key that we don't know, "api key 99"."""
    schema = _by_key("request").get(api_key)
    return f"api key {api_key}" if schema is None else schema.name.removesuffix("Request")


def api_versions(api_key: int) -> VersionRange:
    """Return the versions of a request that the codec knows: none for an unknown key."""
    schema = _by_key("request").get(api_key)
    return VersionRange.parse(None) if schema is None else schema.versions


def record_name(record_type: int) -> str | None:
    """Return the name of the metadata record with this type, or None."""
    schema = _by_key("metadata").get(record_type)
    return None if schema is None else schema.name


def message_schema(name: str) -> MessageSchema:
    """Return the schema of a message: "FetchRequest", "VotersRecord". Raises WireError."""
    schema = _by_name().get(name)
    if schema is None:
        raise WireError(f"there is no message {name}")
    return schema


def decode_request(api_key: int, version: int, data: bytes | memoryview, offset: int = 0) -> Fields:
    """Return the fields of a request's body, which begins at `offset`. Raises WireError."""
    return decode_counted_request(api_key, version, data, offset)[0]


def decode_counted_request(
    api_key: int,
    version: int,
    data: bytes | memoryview,
    offset: int = 0,
    elements_max: int = ELEMENTS_MAX,
) -> tuple[Fields, int]:
    """Do what `decode_request` does; also return how many elements its arrays have together."""
    name, left = _name("request", api_key), [elements_max]
    return _decode(name, version, data, offset, left)[0], elements_max - left[0]


def decode_request_in_steps(
    api_key: int, version: int, data: bytes, offset: int = 0, elements_max: int = ELEMENTS_MAX
) -> Generator[int, None, tuple[Fields, int]]:
    """Do what `decode_counted_request` does, with pauses. Raises WireError.

    Each pause yields how many elements were counted so far: they are counted before they are made.
    """
    name = _name("request", api_key)
    decode = _stepped_decoder(name, version)
    if decode is None:
        return decode_counted_request(api_key, version, data, offset, elements_max)
    left = [elements_max, 0]
    steps = decode(data, offset, left)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            fields, _ = done.value
            return fields, elements_max - left[0]
        except _UNREADABLE as error:
            raise _unreadable(name, version, error) from None
        yield elements_max - left[0]


def encode_request(api_key: int, version: int, fields: Fields) -> bytes:
    """Return the bytes of a request's body. Raises WireError."""
    return encode_message(_name("request", api_key), version, fields)


def decode_response(
    api_key: int, version: int, data: bytes | memoryview, offset: int = 0
) -> Fields:
    """Return the fields of a response's body, which begins at `offset`. Raises WireError."""
    return decode_message(_name("response", api_key), version, data, offset)


def encode_response(api_key: int, version: int, fields: Fields) -> bytes:
    """Return the bytes of a response's body. Raises WireError."""
    steps = encode_response_in_steps(api_key, version, fields)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return b"".join(done.value)


def encode_response_in_steps(
    api_key: int, version: int, fields: Fields
) -> Generator[None, None, Parts]:
    """Return the parts of a response's body, with pauses. Raises WireError.

    Raises also what an iterable of the response raises.
    """
    name, parts = _name("response", api_key), BodyParts()
    encode = _stepped_encoder(name, version)
    if encode is None:
        _encode(parts.last, name, version, fields)
        return parts.done()
    try:
        yield from encode(parts, fields, [0])
    except WireError as error:
        raise WireError(f"{name} {version}: {error}") from None
    except _UNWRITABLE as error:
        raise _unwritable(name, version, error) from None
    return parts.done()


def decode_message(name: str, version: int, data: bytes | memoryview, offset: int = 0) -> Fields:
    """Return the fields of any message by its schema's name. Raises WireError."""
    fields, left = _decode(name, version, data, offset, [_ANY_NUMBER])
    if left:
        raise WireError(f"{name} {version}: {left} bytes are left over")
    return fields


def encode_message(name: str, version: int, fields: Fields) -> bytes:
    """Return the bytes of any message by its schema's name. Raises WireError."""
    out = bytearray()
    _encode(out, name, version, fields)
    return bytes(out)


def encode_metadata_record(name: str, version: int, fields: Fields) -> bytes:
    """Return the value of a record in the metadata log: frame version, type, version, fields."""
    out = bytearray(_record_frame(name, version))
    _encode(out, name, version, fields)
    return bytes(out)


def decode_metadata_record(value: bytes) -> tuple[str, int, Fields]:
    """Return name, version and fields of a record's value in the metadata log. Raises WireError."""
    try:
        frame, position = decode_uvarint(value, 0)
        kind, position = decode_uvarint(value, position)
        version, position = decode_uvarint(value, position)
    except IndexError:
        raise WireError("a metadata record ends before its fields") from None
    name = record_name(kind)
    if frame != RECORD_FRAME_VERSION or name is None:
        raise WireError(f"there is no metadata record of type {kind} in frame {frame}")
    return name, version, decode_message(name, version, value, position)


def request_header_version(api_key: int, version: int) -> int:
    """Return which header stands before a request: 1, or 2 with tagged fields. Raises WireError."""
    return 2 if version in message_schema(_name("request", api_key)).flexible else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return which header stands before a response. Raises WireError.

    It is 0 before every ApiVersions response, so that a client can read it that asked in a version
    which the server doesn't know (KIP-511).
    """
    if api_key == API_VERSIONS:
        return 0
    return 1 if version in message_schema(_name("response", api_key)).flexible else 0


def peek_request_header(data: bytes) -> tuple[int, int, int]:
    """Return api key, version and correlation id, which begin every request. Raises WireError."""
    if len(data) < _HEADER.size:
        raise WireError(f"a request of {len(data)} bytes has no header")
    api_key, version, correlation_id = _HEADER.unpack_from(data)
    return api_key, version, correlation_id


def decode_request_header(data: bytes | memoryview) -> tuple[RequestHeader, int]:
    """Return a request's header and the position of its body. Raises WireError.

    For a version of a known request that we don't know, the header of its newest version is taken.
    """
    whole = data if isinstance(data, bytes) else bytes(data)
    api_key, version, correlation_id = peek_request_header(whole)
    known = min(version, api_versions(api_key).last)
    decode = _decoder("RequestHeader", request_header_version(api_key, known))
    try:
        fields, position = decode(whole, 0, [_HEADER_TAGS_MAX])
    except (struct.error, IndexError, UnicodeDecodeError, WireError):
        raise WireError(f"the header of a request {api_name(api_key)} is broken") from None
    return RequestHeader(api_key, version, correlation_id, fields["ClientId"]), position


def encode_request_header(header: RequestHeader) -> bytes:
    """Return the bytes of a request's header. Raises WireError."""
    fields = {
        "RequestApiKey": header.api_key,
        "RequestApiVersion": header.version,
        "CorrelationId": header.correlation_id,
        "ClientId": header.client_id,
    }
    version = request_header_version(header.api_key, header.version)
    return encode_message("RequestHeader", version, fields)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return the bytes of a response's header. Raises WireError."""
    fields = {"CorrelationId": correlation_id}
    return encode_message("ResponseHeader", response_header_version(api_key, version), fields)


def decode_response_header(api_key: int, version: int, data: bytes) -> tuple[int, int]:
    """Return the correlation id and the position of the response's body. Raises WireError."""
    decode = _decoder("ResponseHeader", response_header_version(api_key, version))
    try:
        fields, position = decode(data, 0, [_HEADER_TAGS_MAX])
    except (struct.error, IndexError):
        raise WireError("the header of a response ends too early") from None
    return fields["CorrelationId"], position


def _decode(
    name: str, version: int, data: bytes | memoryview, offset: int, elements_left: list[int]
) -> tuple[Fields, int]:
    """Return a message's fields, and the number of bytes after it."""
    decode = _decoder(name, version)
    whole = data if isinstance(data, bytes) else bytes(data)
    try:
        fields, end = decode(whole, offset, elements_left)
    except _UNREADABLE as error:
        raise _unreadable(name, version, error) from None
    return fields, len(whole) - end


def _unreadable(name: str, version: int, error: Exception) -> WireError:
    if isinstance(error, WireError):
        return WireError(f"{name} {version}: {error}")
    if isinstance(error, UnicodeDecodeError):
        return WireError(f"{name} {version}: a string is not UTF-8")
    return WireError(f"{name} {version}: the data ends too early")


def _encode(out: bytearray, name: str, version: int, fields: Fields) -> None:
    encode = _encoder(name, version)
    try:
        encode(out, fields)
    except WireError as error:
        raise WireError(f"{name} {version}: {error}") from None
    except _UNWRITABLE as error:
        raise _unwritable(name, version, error) from None


def _unwritable(name: str, version: int, error: Exception) -> WireError:
    return WireError(f"{name} {version}: a value has the wrong type: {error}")


@cache
def _by_name() -> Mapping[str, MessageSchema]:
    parsed = (parse_message(schema) for schema in read_schemas())
    return {schema.name: schema for schema in parsed}


@cache
def _by_key(kind: str) -> Mapping[int, MessageSchema]:
    return {one.api_key: one for one in _by_name().values() if one.kind == kind}


def _name(kind: str, api_key: int) -> str:
    schema = _by_key(kind).get(api_key)
    if schema is None:
        raise WireError(f"there is no {kind} with api key {api_key}")
    return schema.name


@cache
def _encoder(name: str, version: int) -> StructEncoder:
    schema = _checked(name, version)
    return compile_encoder(schema.struct, version, schema.flexible)


@cache
def _decoder(name: str, version: int) -> ValueDecoder:
    schema = _checked(name, version)
    return compile_decoder(schema.struct, version, schema.flexible)


@cache
def _stepped_encoder(name: str, version: int) -> SteppedEncoder | None:
    schema = _checked(name, version)
    return compile_stepped_encoder(schema.struct, version, schema.flexible)


@cache
def _stepped_decoder(name: str, version: int) -> SteppedDecoder | None:
    schema = _checked(name, version)
    return compile_stepped_decoder(schema.struct, version, schema.flexible)


def _checked(name: str, version: int) -> MessageSchema:
    schema = message_schema(name)
    if version not in schema.versions:
        first, last = schema.versions
        raise WireError(f"{name} has the versions {first} to {last}, not {version}")
    return schema


@cache
def _record_frame(name: str, version: int) -> bytes:
    numbers = (RECORD_FRAME_VERSION, message_schema(name).api_key, version)
    return b"".join(map(encode_uvarint, numbers))
