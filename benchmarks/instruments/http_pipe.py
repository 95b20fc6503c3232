"""A keep-alive HTTP connection that takes the load generator almost no processor time.

Rule: the load generator shares two cores with the processes that it measures. So this code knows
only the HTTP of our server's answers: a status line, headers, `content-length`, a body. It sends
one request at a time. It is not a general HTTP client.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.instruments.figures import percentile
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import JSON

_HEAD_END = b"\r\n\r\n"


class NoAnswerError(Exception):
    """Refused, broken, or too late."""


class Pipe(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._on_reply: Callable[[int, bytes], None] | None = None
        self._on_lost: Callable[[], None] | None = None
        self._length = -1
        self._status = 0
        self.closed = False

    @classmethod
    async def open(cls, port: int) -> "Pipe":
        """Connect. Raises OSError."""
        _, pipe = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(
        self,
        request: bytes,
        on_reply: Callable[[int, bytes], None],
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        """Send a whole request; `on_reply(status, body)`, or `on_lost` when the connection ends."""
        assert self._transport is not None
        self._on_reply, self._on_lost = on_reply, on_lost
        if self.closed:
            self.connection_lost(None)
        else:
            self._transport.write(request)

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        headers: str = "",
    ) -> tuple[int, bytes]:
        """Send and wait. Raises NoAnswerError."""
        return await self.exchange(encoded(method, path, body, content_type, headers))

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a whole request and wait. Raises NoAnswerError."""
        done: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()

        def replied(status: int, answer: bytes) -> None:
            if not done.done():
                done.set_result((status, answer))

        def lost() -> None:
            if not done.done():
                done.set_exception(NoAnswerError("the connection ended"))

        self.send(request, replied, lost)
        return await done

    def close(self) -> None:
        """Close."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        if self._length < 0:
            end = buffer.find(_HEAD_END)
            if end < 0:
                self._buffer = buffer
                return
            self._status = int(buffer[9:12])
            at = buffer.lower().index(b"content-length:", 0, end + 2) + 15
            self._length = int(buffer[at : buffer.index(b"\r", at)])
            buffer = buffer[end + 4 :]
        if len(buffer) < self._length:
            self._buffer = buffer
            return
        body = buffer[: self._length]
        self._buffer, self._length = buffer[self._length :], -1
        on_reply, self._on_reply = self._on_reply, None
        if on_reply is not None:
            on_reply(self._status, body)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        on_lost, self._on_lost, self._on_reply = self._on_lost, None, None
        if on_lost is not None:
            on_lost()


def request_id() -> str:
    """A header that names a change: sent again, it is not made again."""
    drawn = uuid7(time.time_ns() // 1_000_000, secrets.randbits(74))
    return f"x-logberg-request-id: {uuid_text(drawn)}\r\n"


def encoded(
    method: str, path: str, body: bytes = b"", content_type: str = JSON, headers: str = ""
) -> bytes:
    """A request's bytes."""
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {content_type}\r\n{headers}"
    if body or method != "GET":
        head += f"content-type: {content_type}\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Load(NamedTuple):
    """What a closed loop of connections saw."""

    seconds: float
    times: list[float]
    """Of each answer, in seconds."""
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Answers with status 200 a second."""
        return self.statuses.get(200, 0) / self.seconds

    def ms(self, share: float) -> float:
        """A percentile of the answers' times."""
        return percentile(self.times, share) * 1000


async def load(port: int, connections: int, seconds: float, make: Callable[[int], bytes]) -> Load:
    """Keep one request under way on each connection; `make(connection)` gives the next.

    Raises NoAnswerError when a connection ends: these servers are not being killed.
    """
    pipes = [await Pipe.open(port) for _ in range(connections)]
    try:
        return await drive(pipes, seconds, make)
    finally:
        for pipe in pipes:
            pipe.close()


async def drive(pipes: Sequence[Pipe], seconds: float, make: Callable[[int], bytes]) -> Load:
    """As `load`, on connections that are open."""
    done = asyncio.get_running_loop().create_future()
    times: list[float] = []
    statuses: dict[int, int] = {}
    left = len(pipes)
    started = time.perf_counter()
    until = started + seconds

    def lost() -> None:
        if not done.done():
            done.set_exception(NoAnswerError("the connection ended"))

    def go(number: int, pipe: Pipe) -> None:
        sent = time.perf_counter()

        def replied(status: int, _body: bytes) -> None:
            nonlocal left
            now = time.perf_counter()
            times.append(now - sent)
            statuses[status] = statuses.get(status, 0) + 1
            if now < until:
                go(number, pipe)
                return
            left -= 1
            if left == 0 and not done.done():
                done.set_result(None)

        pipe.send(make(number), replied, lost)

    for number, pipe in enumerate(pipes):
        go(number, pipe)
    await done
    return Load(time.perf_counter() - started, times, statuses)
