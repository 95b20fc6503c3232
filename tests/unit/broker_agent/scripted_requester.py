"""A requester that keeps requests until the test answers them."""

from typing import Any

import msgspec

from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import error_reply
from metadata.messages.wire import MSGPACK, decode, encode
from runtime.http.requests import Reply, Request, Unreachable


class ScriptedRequester:
    """Decodes what it is asked as `message_type`."""

    def __init__(self, message_type: Any) -> None:
        self._type = message_type
        self.sent: list[tuple[str, str, Any]] = []
        """Of each request: the target, the path, the message."""
        self._callbacks: list[Any] = []

    def request(self, target: str, request: Request, on_reply: Any, deadline_s: float) -> None:
        message = decode(self._type, request.body, request.headers["content-type"])
        self.sent.append((target, request.path, message))
        self._callbacks.append(on_reply)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._callbacks)

    def answer(self, reply: msgspec.Struct) -> None:
        """Answer the oldest request."""
        self.give(Reply(200, encode(reply, MSGPACK), {"content-type": MSGPACK}))

    def refuse(self, code: ErrorCode) -> None:
        """Answer the oldest request with an error."""
        body = encode(error_reply(LogbergError(code, "no")), MSGPACK)
        self.give(Reply(code.status, body, {"content-type": MSGPACK}))

    def lose(self) -> None:
        """Let the oldest request end without an answer."""
        self.give(Unreachable("no answer"))

    def give(self, answer: Reply | Unreachable) -> None:
        self._callbacks.pop(0)(answer)
