"""Executes a request that is sent twice only once.

The answer to a request is written to the log, as a `RequestOutcomeRecord` at the end of the batch
that it answers. So a retry gets the same answer from any leader, also after a restart.

A request id is a UUIDv7, so ids sort by the time at which they were drawn. The log forgets the
oldest ids. The largest forgotten id is the floor: a request at or below it is refused, because it
may have been executed.

A request that is written in rounds has an outcome for each round but the last (`round_key`). So the
same request, sent again, goes on behind the rounds that are in the log.
"""

from collections.abc import Callable
from enum import Enum, auto
from hashlib import sha256
from typing import TypeVar

import msgspec

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.records import RequestOutcomeRecord
from metadata.uuids import UUID7_RANDOM_BITS, UuidError, parse_uuid, uuid7, uuid7_time_ms, uuid_text
from runtime.http.requests import Request
from runtime.randomness import Random

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a `RequestOutcomeRecord` remembers."""

    status: int
    body: bytes
    """MessagePack, also when the caller asked for JSON."""
    offset: int
    """End offset of the records that the request wrote."""
    epoch: int


class RequestKey(msgspec.Struct, frozen=True):
    """What makes two requests the same one."""

    request_id: bytes
    digest: bytes
    """SHA-256 of the request's meaning, without the caller and the format."""


class JoinResult(Enum):
    """Whether the same request is under way already."""

    NEW = auto()
    JOINED = auto()
    """The same request is under way, and its answer will be given to both."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Answer).decode


def request_key(request: Request, meaning: bytes, now_ms: int, random: Random) -> RequestKey:
    """Read the request id of a request, or draw one.

    `meaning` is the request's message, encoded canonically. Raises LogbergError INVALID_REQUEST.
    """
    digest = sha256(b"\0".join((request.method.encode(), request.path.encode(), meaning))).digest()
    request_id = given_request_id(request)
    if request_id is None:
        request_id = uuid7(now_ms, random.getrandbits(UUID7_RANDOM_BITS))
    return RequestKey(request_id, digest)


def given_request_id(request: Request) -> bytes | None:
    """Return the request id that the caller gives, or None. Raises LogbergError INVALID_REQUEST."""
    text = request.headers.get("x-logberg-request-id")
    if text is None:
        return None
    try:
        request_id = parse_uuid(text)
        uuid7_time_ms(request_id)
    except (UuidError, ValueError) as error:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"header x-logberg-request-id: {error}; it must be a UUIDv7"
        ) from None
    return request_id


def round_key(key: RequestKey, number: int) -> RequestKey:
    """Return the key under which the log remembers what one round of a request answered.

    The id is derived from the request's, and has its time. So it is forgotten in the same
    millisecond of ids.
    """
    drawn = sha256(b"round %d of " % number + key.request_id).digest()
    bits = int.from_bytes(drawn, "big") >> (256 - UUID7_RANDOM_BITS)
    return RequestKey(uuid7(uuid7_time_ms(key.request_id), bits), key.digest)


class Idempotency:
    """Checks request ids, on the active controller."""

    def __init__(self, ahead_ms: int) -> None:
        """`ahead_ms`: how far the time in an id may be ahead of our clock."""
        self._ahead_ms = ahead_ms
        self._under_way: dict[bytes, tuple[bytes, list[Callable[[object], None]]]] = {}

    def recall(self, key: RequestKey, image: MetadataImage, now_ms: int) -> Answer | None:
        """Return the earlier answer if the request was executed already, else None.

        `image` is the pending image: an answer in it may not be committed yet. Raises
        LogbergError: REQUEST_ID_REUSED, REQUEST_EXPIRED, REQUEST_FROM_FUTURE.
        """
        outcome = image.outcomes.get(key.request_id)
        if outcome is not None:
            if outcome.digest != key.digest:
                raise _reused(key)
            return _decode(outcome.answer)
        drawn_ms = uuid7_time_ms(key.request_id)
        if key.request_id <= image.outcomes.floor:
            raise LogbergError(
                ErrorCode.REQUEST_EXPIRED,
                f"request id {uuid_text(key.request_id)} is too old: the log no longer says "
                "whether it was executed. Check the state, and send the request with a new id",
            )
        if drawn_ms > now_ms + self._ahead_ms:
            raise LogbergError(
                ErrorCode.REQUEST_FROM_FUTURE,
                f"request id {uuid_text(key.request_id)} was drawn more than "
                f"{self._ahead_ms // 1000} s ahead of the controller's clock; correct your clock",
                {"timeMs": str(now_ms)},
            )
        return None

    def join(self, key: RequestKey, on_answer: Callable[[object], None]) -> JoinResult:
        """Note that a request begins, or let it share the answer of one under way.

        Raises LogbergError REQUEST_ID_REUSED.
        """
        under_way = self._under_way.get(key.request_id)
        if under_way is None:
            self._under_way[key.request_id] = (key.digest, [on_answer])
            return JoinResult.NEW
        if under_way[0] != key.digest:
            raise _reused(key)
        under_way[1].append(on_answer)
        return JoinResult.JOINED

    def finish(self, key: RequestKey, answer: object) -> None:
        """Answer a request, and all requests that joined it."""
        _, callbacks = self._under_way.pop(key.request_id, (b"", []))
        for on_answer in callbacks:
            on_answer(answer)


def outcome_record(key: RequestKey, answer: Answer, time_ms: int) -> RequestOutcomeRecord:
    """Return the record that says how the request was answered."""
    return RequestOutcomeRecord(key.request_id, key.digest, _encode(answer), time_ms)


def answer_end(image: MetadataImage, request_id: bytes) -> int | None:
    """Return the end offset of what a request wrote; None if the log doesn't remember it."""
    outcome = image.outcomes.get(request_id)
    return None if outcome is None else _decode(outcome.answer).offset


def remembered_reply(image: MetadataImage, request_id: bytes, reply_type: type[T]) -> T | None:
    """Return the reply to a request; None: the log remembers none, or one of another type."""
    outcome = image.outcomes.get(request_id)
    if outcome is None:
        return None
    try:
        return msgspec.msgpack.decode(_decode(outcome.answer).body, type=reply_type)
    except msgspec.ValidationError:
        return None


def _reused(key: RequestKey) -> LogbergError:
    return LogbergError(
        ErrorCode.REQUEST_ID_REUSED,
        f"request id {uuid_text(key.request_id)} was used for another request; draw a new one",
    )
