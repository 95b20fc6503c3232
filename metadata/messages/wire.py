"""Encodes and decodes messages: MessagePack maps or JSON, as the content type says.

Rule: an error in a client's request becomes a LogbergError that names the field and what was
expected. In JSON, bytes are base64.
"""

from functools import cache, lru_cache
from typing import Any, Final, TypeVar

import msgspec

from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import ErrorReply
from metadata.messages.fetch import MetadataFetchReply
from metadata.messages.known_fields import known_fields

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"
_ALIASES: Final = {
    "": JSON,
    JSON: JSON,
    MSGPACK: MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
}

VALUES_MAX: Final = 15_000
"""The most fields and list entries in one request. Decoding so many takes about 10 ms."""
OBJECTS_MAX: Final = 5_000
"""The most objects in one request, such as topics. An object takes longer to decode than a
field."""
MSGPACK_BYTES_MAX: Final = 96 * 1024
"""The most bytes of a request in MessagePack."""

_T = TypeVar("_T")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError)

_msgpack_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=64)
def media_type(content_type: str) -> str:
    """Return MSGPACK or JSON for the value of a content-type header; JSON for an empty value.

    Raises LogbergError (UNSUPPORTED_MEDIA_TYPE).
    """
    name = content_type.partition(";")[0].strip().lower()
    try:
        return _ALIASES[name]
    except KeyError:
        raise LogbergError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"content-type {name[:80]!r} is not supported; send {JSON} or {MSGPACK}",
        ) from None


@lru_cache(maxsize=64)
def reply_type(accept: str, content_type: str = "") -> str:
    """Return the format for an answer: the first of ours in `accept`, else that of the request.

    Ignores quality values. Never raises, so that a node can always answer with an error.
    """
    for entry in accept.split(","):
        name = entry.partition(";")[0].strip().lower()
        if name and name in _ALIASES:
            return _ALIASES[name]
    return _ALIASES.get(content_type.partition(";")[0].strip().lower(), JSON)


def encode(message: Any, content_type: str) -> bytes:
    """Return a message as bytes. Raises LogbergError (UNSUPPORTED_MEDIA_TYPE)."""
    if media_type(content_type) == MSGPACK:
        return _msgpack_encoder.encode(message)
    return _json_encoder.encode(message)


def canonical(message: msgspec.Struct) -> bytes:
    """Return a message's canonical bytes: they don't depend on the format it was sent in."""
    return msgspec.json.encode(message, order="sorted")


def check_density(
    body: bytes,
    content_type: str,
    values_max: int = VALUES_MAX,
    objects_max: int = OBJECTS_MAX,
) -> None:
    """Refuse a request that would take long to decode, since a decoder can't be interrupted.

    The time grows with the number of values, not of bytes. In JSON this counts commas. In
    MessagePack a value may take one byte, so this counts bytes. Raises LogbergError BODY_TOO_LARGE.
    """
    if len(body) <= VALUES_MAX:
        return
    if media_type(content_type) == MSGPACK:
        if len(body) <= MSGPACK_BYTES_MAX:
            return
        raise LogbergError(
            ErrorCode.BODY_TOO_LARGE,
            f"a MessagePack request may have at most {MSGPACK_BYTES_MAX} bytes; send several "
            "requests, or JSON",
        )
    if body.count(b",") > values_max or body.count(b"{") > objects_max:
        raise LogbergError(
            ErrorCode.BODY_TOO_LARGE,
            f"the request has more than {values_max} fields and list entries, or more than "
            f"{objects_max} objects; send several requests",
        )


def decode(message_type: type[_T], body: bytes, content_type: str, *, tolerant: bool = False) -> _T:
    """Return the message in `body`. `tolerant`: ignore unknown fields, as a newer client may send.

    Raises LogbergError: UNSUPPORTED_MEDIA_TYPE; MALFORMED_BODY if the body is not in that format;
    INVALID_REQUEST for a missing field or one of another type, and without `tolerant` for an
    unknown one.
    """
    media = media_type(content_type)
    wanted: Any = message_type
    try:
        try:
            message: _T = _decoder(wanted, media)(body)
        except msgspec.ValidationError:
            if not tolerant:
                raise
            message = _decoder(wanted, media)(_without_unknown(wanted, body, media))
    except msgspec.ValidationError as error:
        path, sentence = _in_words(str(error))
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, sentence, {"field": path} if path else None
        ) from error
    except _UNREADABLE as error:
        name = "JSON" if media == JSON else "MessagePack"
        problem = "the body is empty" if not body else f"the body is not {name}: {error}"
        raise LogbergError(ErrorCode.MALFORMED_BODY, problem) from error
    return message


def decode_error(status: int, body: bytes, content_type: str) -> ErrorReply:
    """Return the error in an answer whose status isn't 200.

    For a body that is not an `ErrorReply` of ours, the code follows from the status.
    """
    try:
        return decode(ErrorReply, body, content_type)
    except LogbergError:
        code = _STATUS_CODES.get(status, ErrorCode.UNKNOWN_SERVER_ERROR)
        return ErrorReply(
            code=code.value,
            message=f"HTTP status {status}, without an error of Logberg: did a proxy answer?",
            whose_fault=code.fault.value,
            retriable=code.retriable,
        )


def decode_fetch_reply(status: int, body: bytes, content_type: str) -> MetadataFetchReply:
    """Return the answer to a MetadataFetch, with an error always in the field `error`.

    Raises LogbergError for an answer with status 200 that can't be read.
    """
    if status == 200:
        return decode(MetadataFetchReply, body, content_type)
    try:
        reply = decode(MetadataFetchReply, body, content_type)
        if reply.error is not None:
            return reply
    except LogbergError:
        pass
    error = decode_error(status, body, content_type)
    return MetadataFetchReply(
        error=error,
        leader_id=error.leader_id,
        leader_epoch=error.leader_epoch,
        leader_url=error.leader_url,
    )


_STATUS_CODES: Final = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    408: ErrorCode.BODY_TIMED_OUT,
    413: ErrorCode.BODY_TOO_LARGE,
    415: ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    421: ErrorCode.NOT_CONTROLLER,
    429: ErrorCode.THROTTLED,
    503: ErrorCode.NO_QUORUM,
    507: ErrorCode.DISK_FULL,
}


def _without_unknown(message_type: Any, body: bytes, media: str) -> bytes:
    """Return a body without the fields that its message does not have."""
    fields = _decoder(Any, media)(body)
    return encode(known_fields(fields, message_type), media)


@cache
def _decoder(message_type: Any, media: str) -> Any:
    if media == MSGPACK:
        return msgspec.msgpack.Decoder(message_type).decode
    return msgspec.json.Decoder(message_type).decode


def _in_words(problem: str) -> tuple[str, str]:
    """Return the field and a sentence from "Expected `int`, got `str` - at `$.brokerId`"."""
    problem = problem.replace("`None`", "`null`")
    what, _, where = problem.rpartition(" - at ")
    if not what:
        what, where = problem, ""
    path = where.strip("`").removeprefix("$").removeprefix(".")
    place = f"field {path}" if path else "the body"
    return path, f"{place}: {what[:1].lower()}{what[1:].replace('`', '')}"
