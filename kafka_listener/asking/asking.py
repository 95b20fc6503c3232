"""Asks our own routes in the name of a Kafka request, and reads what they answer.

Rule: what a route answers, or that it didn't, comes back exactly once, as the route's reply or as
a LogbergError. If what the caller does with a reply fails, the caller gets the failure as a second
and last outcome. So the Kafka client still gets an answer. The dispatcher passes on only the first
answer.

Kafka's clients send no request id, and send a request again when its outcome is unknown. So each
request gets a new id from the controller. An unknown outcome is REQUEST_TIMED_OUT, as in Kafka.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from kafka_listener.asking.in_steps import run
from kafka_listener.asking.request import KafkaRequest, Steps
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import ErrorReply
from metadata.messages.long_lists import decode_long_reply
from metadata.messages.wire import (
    JSON,
    MSGPACK,
    check_density,
    decode,
    decode_error,
    encode,
)
from runtime.clock import Clock
from runtime.http.requests import OnReply, Reply, Request, Unreachable

T = TypeVar("T", bound=msgspec.Struct)
AskRoute = Callable[[Request, OnReply], None]
"""`Controller.handle`, or an agent's way to the controllers."""
ON_BEHALF_OF: Final = "x-logberg-on-behalf-of"
EXPECT_OFFSET: Final = "x-logberg-expect-offset"
CLIENT_ID: Final = "x-logberg-client-id"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_TEXT_MAX: Final = 200
_MSGPACK_MAX: Final = 3_000
"""A message of more elements would hardly fit into MessagePack's limit, so it is JSON at once."""


class Asking:
    """The way from the handlers to the routes."""

    def __init__(
        self,
        ask: AskRoute,
        clock: Clock,
        on_defect: Callable[[KafkaRequest, Exception], None] = lambda _request, _error: None,
    ) -> None:
        """`on_defect` hears of an exception while a reply was turned into Kafka's answer."""
        self._ask = ask
        self.clock = clock
        self.on_defect = on_defect

    def change(
        self,
        request: KafkaRequest,
        method: str,
        path: str,
        message: msgspec.Struct | None,
        reply_type: type[T],
        then: Callable[[T | LogbergError], None],
        query: Mapping[str, str] = _NONE,
        expect_offset: int | None = None,
    ) -> None:
        """Send a route's message; `then` gets the decoded reply, now or later.

        `expect_offset`: that of the answer in which the caller read what it changes; if that has
        changed since, the outcome is STALE_EXPECTED_OFFSET.
        """
        body, content_type = _encoded(message, request.elements)
        headers = {
            "accept": MSGPACK,
            "content-type": content_type,
            **_provenance(request),
        }
        if expect_offset is not None:
            headers[EXPECT_OFFSET] = str(expect_offset)
        self._send(request, Request(method, path, body, query, headers), reply_type, then)

    def read(
        self,
        request: KafkaRequest,
        path: str,
        reply_type: type[T],
        then: Callable[[T | LogbergError], None],
        query: Mapping[str, str] = _NONE,
    ) -> None:
        """Read from a route; linearizable unless `query` says otherwise."""
        headers = {"accept": MSGPACK, **_provenance(request)}
        self._send(request, Request("GET", path, b"", query, headers), reply_type, then)

    def defect_of(self, request: KafkaRequest, error: Exception) -> LogbergError:
        """Report an exception of ours; return what the client learns of it."""
        self.on_defect(request, error)
        return defect(error)

    def _send(
        self,
        request: KafkaRequest,
        sent: Request,
        reply_type: type[T],
        then: Callable[[T | LogbergError], None],
    ) -> None:
        def on_reply(reply: Reply | Unreachable) -> None:
            if isinstance(reply, Unreachable) or reply.parts is None:
                on_outcome(_outcome(reply, reply_type))
            else:
                run(self.clock, _read(reply, reply_type, on_outcome), failed, at_once=False)

        def failed(error: Exception) -> None:
            then(self.defect_of(request, error))

        def on_outcome(outcome: T | LogbergError) -> None:
            try:
                then(outcome)
            except Exception as error:  # noqa: BLE001 - the client must get an answer
                failed(error)

        self._ask(msgspec.structs.replace(sent, caller=request.caller), on_reply)


def error_of(reply: ErrorReply) -> LogbergError:
    """Return the error that a reply, or one entry of it, carries."""
    return LogbergError(reply.known_code(), reply.message, reply.details, reply.retry_after_ms)


def _read(reply: Reply, reply_type: type[T], then: Callable[[T | LogbergError], None]) -> Steps:
    """Read and decode a reply that is made while it is read, with pauses."""
    found = [reply.body]
    for part in reply.parts or ():
        found.append(part)
        yield
    whole = msgspec.structs.replace(reply, body=b"".join(found), parts=None)
    found.clear()
    yield
    if whole.status != 200:
        then(_outcome(whole, reply_type))
        return
    content_type = whole.headers.get("content-type", MSGPACK)
    try:
        outcome = yield from decode_long_reply(reply_type, whole.body, content_type)
    except Exception as error:  # noqa: BLE001 - the change may be made: its client must get an answer
        then(defect(error))
        return
    yield
    then(outcome)


def _encoded(message: msgspec.Struct | None, elements: int) -> tuple[bytes, str]:
    """Return a body and its type: MessagePack, or JSON, which may be larger."""
    if message is None:
        return b"", MSGPACK
    if elements > _MSGPACK_MAX:
        return encode(message, JSON), JSON
    body = encode(message, MSGPACK)
    try:
        check_density(body, MSGPACK)
    except LogbergError:
        return encode(message, JSON), JSON
    return body, MSGPACK


def _provenance(request: KafkaRequest) -> dict[str, str]:
    headers = {}
    if request.client_id:
        headers[CLIENT_ID] = _printable(request.client_id)
    if request.on_behalf_of:
        headers[ON_BEHALF_OF] = request.on_behalf_of
    return headers


def _printable(text: str) -> str:
    """Return a client's id as a header may hold it."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_TEXT_MAX])


def _outcome(reply: Reply | Unreachable, reply_type: type[T]) -> T | LogbergError:
    if isinstance(reply, Unreachable):
        if reply.refused:
            return LogbergError(ErrorCode.NO_QUORUM, f"no controller answers: {reply.reason}")
        return LogbergError(
            ErrorCode.REQUEST_TIMED_OUT, f"no answer, so the outcome is unknown: {reply.reason}"
        )
    try:
        content_type = reply.headers.get("content-type", MSGPACK)
        if reply.status != 200:
            return error_of(decode_error(reply.status, reply.body, content_type))
        return decode(reply_type, reply.body, content_type)
    except Exception as error:  # noqa: BLE001 - the change may be made: its client must get an answer
        return defect(error)


def defect(error: Exception) -> LogbergError:
    """Return what a client learns of an exception of ours."""
    return LogbergError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the answer could not be made, though the request may have been carried out: {error!r}",
    )
