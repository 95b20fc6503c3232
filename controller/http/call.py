"""One HTTP request on its way: its decoded body, and its one reply.

Invariant: a call is answered exactly once, with a message or an error, in the format that the
caller asked for.
"""

from collections.abc import Callable, Generator, Mapping
from itertools import islice
from math import ceil
from typing import Any, Final, TypeVar

import msgspec

from controller.access.guard import RequestAccess
from controller.access.listing import ListFilter
from controller.access.watch_rights import WatchRights, rights_of_watcher
from controller.http.degraded import RETRY_AFTER_S, retry_after_ms
from controller.http.fetch_content import unreadable
from controller.http.node_view import NodeView
from controller.http.routes import RouteMatch
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import error_reply
from metadata.messages.long_lists import LongRequest, decode_long
from metadata.messages.parts import EncodedOnce, LongMessage, encode_in_parts
from metadata.messages.wire import check_density, decode, encode, reply_type
from runtime.http.requests import Reply, Request

T = TypeVar("T")
OnReply = Callable[[Reply], None]
REQUEST_ID: Final = "x-logberg-request-id"
_FEW_PARTS: Final = 6
"""An answer with fewer parts is sent whole. With so many it is built while it is sent: it may have
few entries, and one of them may be a topic with very many partitions."""


class Call:
    """One request, and the way to its one reply."""

    def __init__(
        self,
        node: NodeView,
        wall_ms: Callable[[], int],
        request: Request,
        found: RouteMatch,
        on_reply: OnReply,
    ) -> None:
        self.node = node
        self.wall_ms = wall_ms
        self.request = request
        self.arguments: Mapping[str, str] = found.arguments
        self.on_reply = on_reply
        self.content_type = request.headers.get("content-type", "")
        self.format = reply_type(request.headers.get("accept", ""), self.content_type)
        self.tolerant = False
        """Ignore unknown fields of the body. The request's version decides this."""
        self.message: Any = None
        """The body, decoded; None if the route has none."""
        self.access: RequestAccess | None = None
        """Judges the request; None where nothing is judged."""
        self.refused: LogbergError | ErrorCode | None = None
        """The error of the answer; None: it has none."""

    def body(self, message_type: type[Any]) -> Any:
        """Decode the request's message. Raises LogbergError."""
        check_density(self.request.body, self.content_type)
        return decode(message_type, self.request.body, self.content_type, tolerant=self.tolerant)

    def long_body(self, message_type: type[Any], name: str) -> Generator[None, None, LongRequest]:
        """Decode a message whose field `name` may be a long list. Raises LogbergError."""
        body, content_type = self.request.body, self.content_type
        return decode_long(message_type, name, body, content_type, tolerant=self.tolerant)

    def shown(self) -> ListFilter | None:
        """Return what the asker of a list may see, by the newest entries; None: all of it."""
        return None if self.access is None else self.access.list_filter(self.node.replica.image)

    def watch_rights(self, topic: str) -> WatchRights:
        """Return what the asker of a watch may see, by the newest entries.

        `topic`: the watched topic's name; empty for other resources.
        """
        return rights_of_watcher(self.access, self.node.replica.image, topic)

    def no_route(self, found: RouteMatch) -> None:
        """Raise LogbergError for a path or a method that doesn't exist."""
        path = self.request.path[:200]
        if not found.allowed:
            raise LogbergError(
                ErrorCode.NOT_FOUND, f"there is no path {path!r}; /v1/openapi.json lists all paths"
            )
        allow = ", ".join(found.allowed)
        inner = self.on_reply
        self.on_reply = lambda reply: inner(
            msgspec.structs.replace(reply, headers={**reply.headers, "allow": allow})
        )
        raise LogbergError(ErrorCode.METHOD_NOT_ALLOWED, f"{path!r} takes {allow}")

    @property
    def refused_with(self) -> ErrorCode | None:
        """The code of the answer's error; None: it has none."""
        refused = self.refused
        return refused.code if isinstance(refused, LogbergError) else refused

    def contained(self, step: Callable[[T], None]) -> Callable[[T], None]:
        """Return a step that may come later, and refuses the request instead of raising."""

        def contained(value: T) -> None:
            request_id = self.request.headers.get(REQUEST_ID)
            try:
                step(value)
            except LogbergError as error:
                self.refuse(error, request_id)
            except OSError as error:
                self.refuse(unreadable(error), request_id)

        return contained

    def answer(
        self,
        outcome: msgspec.Struct | LongMessage | EncodedOnce | LogbergError,
        request_id: str | None = None,
    ) -> None:
        """Reply with a message, which may be a long one, or an error."""
        if isinstance(outcome, EncodedOnce):
            body = outcome.encoded(self.format)
            if body is not None:
                self.reply_encoded(200, body, request_id)
                return
            outcome = outcome.message
        if isinstance(outcome, LogbergError):
            self.refuse(outcome, request_id)
        elif isinstance(outcome, LongMessage):
            parts = encode_in_parts(outcome, self.format)
            first = list(islice(parts, _FEW_PARTS))
            if len(first) < _FEW_PARTS:
                self.reply_encoded(200, b"".join(first), request_id)
            else:
                headers = self._headers(None, request_id)
                self.on_reply(Reply(200, b"".join(first), headers, parts))
        else:
            self.reply(200, outcome, request_id)

    def answer_later(self, outcome: Generator[None, None, LongMessage] | LogbergError) -> None:
        """Reply with a message that is found in steps, or an error."""
        if isinstance(outcome, LogbergError):
            self.refuse(outcome)
            return

        def parts() -> Generator[bytes, None, None]:
            # Each step yields no bytes. The sender then serves other connections.
            while True:
                try:
                    next(outcome)
                except StopIteration as found:
                    message = found.value
                    break
                yield b""
            yield from encode_in_parts(message, self.format)

        self.on_reply(Reply(200, b"", self._headers(None, None), parts()))

    def reply(
        self,
        status: int,
        message: msgspec.Struct,
        request_id: str | None = None,
        code: ErrorCode | None = None,
    ) -> None:
        self.reply_encoded(status, encode(message, self.format), request_id, code)

    def reply_encoded(
        self,
        status: int,
        body: bytes,
        request_id: str | None = None,
        code: ErrorCode | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        """Reply with a message that is encoded already."""
        self.refused = code
        headers = self._headers(code, request_id)
        if retry_after_ms is not None:
            headers["retry-after"] = str(ceil(retry_after_ms / 1000))
        self.on_reply(Reply(status, body, headers))

    def refuse(self, error: LogbergError, request_id: str | None = None) -> None:
        self.on_reply(self.refusal(error, request_id))

    def refusal(self, error: LogbergError, request_id: str | None = None) -> Reply:
        """Return the reply with an error."""
        # The frames of its traceback hold this call: without it, no cycle is left to collect.
        self.refused = error.with_traceback(None)
        leader, url = self.node.leadership()
        wrong_time = error.code in (ErrorCode.REQUEST_FROM_FUTURE, ErrorCode.REQUEST_EXPIRED)
        body = error_reply(
            error,
            leader_id=leader.leader,
            leader_epoch=leader.epoch,
            leader_url=url,
            request_id=request_id,
            server_time_ms=self.wall_ms() if wrong_time else None,
            retry_after_ms=retry_after_ms(error.code),
        )
        headers = self._headers(error.code, request_id)
        if error.retry_after_ms is not None:
            headers["retry-after"] = str(ceil(error.retry_after_ms / 1000))
        if url is not None:
            headers["x-logberg-leader"] = url
        return Reply(error.code.status, encode(body, self.format), headers)

    def _headers(self, code: ErrorCode | None, request_id: str | None) -> dict[str, str]:
        headers = {"content-type": self.format}
        if request_id is not None:
            headers["x-logberg-request-id"] = request_id
        if code is not None and code in RETRY_AFTER_S:
            headers["retry-after"] = str(RETRY_AFTER_S[code])
        return headers


Answers = Mapping[str, Callable[[Call], None]]
"""What answers an allowed call, by the name of its route. It may raise LogbergError."""
