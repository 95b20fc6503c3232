"""Calls the handler once for each request, and waits for its reply.

Rule: every request gets exactly one reply. If the handler raises an exception or doesn't reply in
time, the server replies for it. The handler calls `reply` once, at once or later. If the client has
left, the reply is dropped. A second reply is a defect of the handler: it is dropped and logged.
"""

import asyncio
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
        reply_s: float,
        on_error: OnError,
        counters: Counter[str],
        log: FilteringBoundLogger,
    ) -> None:
        """`hastened`: paths whose requests go before the others that wait for a pass of the loop.

        `reply_s`: seconds after which the server replies for the handler. `counters`: the server's.
        """
        self._handler = handler
        self._hastened = hastened
        self._reply_s = reply_s
        self._on_error = on_error
        self._counters = counters
        self._log = log
        self._share = of_running_loop()

    async def reply_to(self, request: Request) -> Reply:
        """Return the handler's reply, or an error if the handler fails or is too late."""
        waiting = _Waiting(lambda: self._replied_twice(request))
        self._share.call(lambda: self._call(request, waiting), first=request.path in self._hastened)
        if waiting.answer is not None:
            return waiting.answer
        try:
            async with asyncio.timeout(self._reply_s):
                return await waiting.wait()
        except TimeoutError:
            self._log.error("http_reply_missing", method=request.method, path=request.path)
            self._counters["refused_REQUEST_TIMED_OUT"] += 1
            return self._on_error(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "REQUEST_TIMED_OUT",
                "no answer in time: whether it took effect is not known",
            )
        except asyncio.CancelledError:
            self._counters["abandoned"] += 1
            raise
        finally:
            waiting.left = True

    def _call(self, request: Request, waiting: "_Waiting") -> None:
        if waiting.left:
            return
        try:
            self._handler(request, waiting.reply)
        except Exception:  # noqa: BLE001 - a request must not take the others down with it
            self._log.exception("http_handler_failed", method=request.method, path=request.path)
            self._counters["refused_UNKNOWN_SERVER_ERROR"] += 1
            waiting.fail(
                self._on_error(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "UNKNOWN_SERVER_ERROR",
                    "a defect of the server: its log says more",
                )
            )

    def _replied_twice(self, request: Request) -> None:
        self._log.error("http_answered_twice", method=request.method, path=request.path)
        self._counters["answered_twice"] += 1


class _Waiting:
    """One request that waits for its reply."""

    __slots__ = ("_future", "_on_second", "_replied", "answer", "left")

    def __init__(self, on_second: Callable[[], None]) -> None:
        """`on_second` is called for each reply after the first."""
        self._on_second = on_second
        self.left = False
        """True when nobody waits for the reply any more."""
        self.answer: Reply | None = None
        """The reply, if it came before `wait` was called."""
        self._future: asyncio.Future[Reply] | None = None
        self._replied = False

    def reply(self, reply: Reply) -> None:
        """Take the reply. It is dropped if the client has left, or if it is not the first."""
        if self._replied:
            self._on_second()
            return
        self._replied = True
        if self._future is None:
            self.answer = reply
        elif not self._future.done():
            self._future.set_result(reply)

    def fail(self, reply: Reply) -> None:
        """Take this reply unless there is one already."""
        if not self._replied:
            self.reply(reply)

    def wait(self) -> asyncio.Future[Reply]:
        """Return the future of a reply that has not come yet."""
        self._future = asyncio.get_running_loop().create_future()
        return self._future
