"""Calls the handler once for each request, and passes its reply on.

Rule: every request gets exactly one reply. If the handler raises an exception or doesn't reply in
time, the server replies for it. The handler calls `reply` once, at once or later. If the client has
left, the reply is dropped. A second reply is a defect of the handler: it is dropped and logged.
"""

from collections import Counter
from collections.abc import Callable, Set
from http import HTTPStatus

from structlog.typing import FilteringBoundLogger

from runtime.http.requests import Handler, OnError, Reply, Request
from runtime.loop.pass_share import of_running_loop


class Handling:
    """Calls one handler. To be made on a running loop."""

    def __init__(
        self,
        handler: Handler,
        *,
        hastened: Set[str],
        on_error: OnError,
        counters: Counter[str],
        log: FilteringBoundLogger,
    ) -> None:
        """`hastened`: paths whose requests go before the others that wait for a pass of the loop.

        `counters`: the server's.
        """
        self._handler = handler
        self._hastened = hastened
        self._on_error = on_error
        self._counters = counters
        self._log = log
        self._share = of_running_loop()

    def ask(self, request: Request, on_reply: Callable[[Reply], None]) -> "Waiting":
        """Call the handler, now or in a later pass of the loop; `on_reply` gets the one reply."""
        waiting = Waiting(self, request, on_reply)
        self._share.call(waiting.call, first=request.path in self._hastened)
        return waiting

    def call(self, waiting: "Waiting") -> None:
        """Call the handler; reply for it if it fails."""
        request = waiting.request
        try:
            self._handler(request, waiting.reply)
        except Exception:  # noqa: BLE001 - a request must not take the others down with it
            waiting.fail(self.failed(request.method, request.path))

    def failed(self, method: str, path: str) -> Reply:
        """Log the exception that is being handled; return the reply that says so."""
        self._log.exception("http_handler_failed", method=method, path=path)
        self._counters["refused_UNKNOWN_SERVER_ERROR"] += 1
        return self._on_error(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "UNKNOWN_SERVER_ERROR",
            "a defect of the server: its log says more",
        )

    def late(self, request: Request) -> Reply:
        """Return the reply to a request to which the handler didn't reply in time."""
        self._log.error("http_reply_missing", method=request.method, path=request.path)
        self._counters["refused_REQUEST_TIMED_OUT"] += 1
        return self._on_error(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "REQUEST_TIMED_OUT",
            "no answer in time: whether it took effect is not known",
        )

    def replied_twice(self, request: Request) -> None:
        """Log a second reply."""
        self._log.error("http_answered_twice", method=request.method, path=request.path)
        self._counters["answered_twice"] += 1


class Waiting:
    """One request that waits for its reply."""

    __slots__ = ("_handling", "_on_reply", "is_answered", "request")

    def __init__(
        self, handling: Handling, request: Request, on_reply: Callable[[Reply], None]
    ) -> None:
        self._handling = handling
        self._on_reply: Callable[[Reply], None] | None = on_reply
        self.request = request
        self.is_answered = False
        """Whether the handler has replied."""

    def call(self) -> None:
        """Call the handler, unless nobody waits any more."""
        if self._on_reply is not None:
            self._handling.call(self)

    def reply(self, reply: Reply) -> None:
        """Take the reply. It is dropped if the client has left, or if it is not the first."""
        if self.is_answered:
            self._handling.replied_twice(self.request)
            return
        self.is_answered = True
        on_reply, self._on_reply = self._on_reply, None
        if on_reply is not None:
            on_reply(reply)

    def fail(self, reply: Reply) -> None:
        """Take this reply unless there is one already."""
        if not self.is_answered:
            self.reply(reply)

    def leave(self) -> None:
        """Nobody waits for the reply any more."""
        self._on_reply = None
