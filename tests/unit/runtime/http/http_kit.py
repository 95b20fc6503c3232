"""A server with the handlers that tests need, and a client that sends raw bytes to it."""

import asyncio
import gc
import json
import ssl
from asyncio import selector_events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from runtime.http.limits import HttpLimits
from runtime.http.requests import Caller, Reply, Request
from runtime.http.server import HttpServer
from runtime.sockets.credentials import PeerCertificate, ShownToken

OnRequest = Callable[[Request, Callable[[Reply], None]], None]
Serve = Callable[..., HttpServer]
HOST = b"Host: localhost\r\n"


def on_error(status: int, code: str, message: str) -> Reply:
    body = json.dumps({"code": code, "message": message}).encode()
    return Reply(status, body, {"content-type": "application/json"})


def authenticate(
    certificate: PeerCertificate | None, shown: ShownToken | None, uid: int | None, address: str
) -> Caller | Reply:
    token = None if shown is None else shown.text
    if token == "wrong":
        return on_error(401, "UNAUTHENTICATED", "an unknown token")
    if certificate is not None:
        return Caller(f"User:{certificate.uri}", "certificate", address)
    if token is not None:
        return Caller(f"User:{token}", "token", address)
    if uid is not None:
        return Caller(f"User:uid-{uid}", "unix-socket", address)
    return Caller(address=address)


class Asked:
    """A handler that records requests and sends given answers."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.replies: list[Callable[[Reply], None]] = []
        self.answer: Reply | None = Reply(200, b"answer")

    def __call__(self, request: Request, reply: Callable[[Reply], None]) -> None:
        self.requests.append(request)
        self.replies.append(reply)
        if self.answer is not None:
            reply(self.answer)


def make_server(
    handler: OnRequest, host: str = "127.0.0.1", port: int = 0, **more: Any
) -> HttpServer:
    return HttpServer(
        handler,
        host,
        port,
        on_error=on_error,
        log=structlog.get_logger(),
        **{"authenticate": authenticate, **more},
    )


def post(body: bytes = b"", more: bytes = b"", path: bytes = b"/x") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + more + length + b"\r\n" + body


async def settle(until: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not until():  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)


def short(**limits: Any) -> HttpLimits:
    return HttpLimits(**limits)


async def raw(port: int, sent: bytes) -> bytes:
    """Send bytes; return one reply, or what came before the server closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        async with asyncio.timeout(10):
            return await read_reply(reader)
    finally:
        writer.close()


async def ask_by_tls(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    try:
        return await read_reply(reader)
    finally:
        writer.close()


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """Return one reply, head and body; what there is when the connection ends first."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    lengths = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    return head + (await reader.readexactly(lengths[0]) if lengths else b"")


@contextmanager
def frozen() -> Iterator[Callable[[], int]]:
    """Leave alone what is in memory, and collect nothing; gives the count of socket transports."""

    # typeshed has no name for it.
    transport: type = vars(selector_events)["_SelectorTransport"]

    def count() -> int:
        gc.unfreeze()
        return sum(isinstance(each, transport) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    gc.freeze()
    try:
        yield count
    finally:
        gc.unfreeze()
        gc.enable()


def status_of(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


def code_of(reply: bytes) -> str:
    return str(json.loads(reply.partition(b"\r\n\r\n")[2])["code"])
