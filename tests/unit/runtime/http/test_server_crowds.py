"""The HTTP server: many connections, and clients that send or read too slowly."""

import asyncio
import asyncio.sslproto
import gc
import socket
import ssl
import struct
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from runtime.http import connection as http_connection
from runtime.http.connection import HttpConnection
from runtime.http.requests import Reply
from runtime.http.server import HttpServer
from runtime.sockets.tls import client_context, server_context
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import (
    HOST,
    Asked,
    Serve,
    ask_by_tls,
    code_of,
    frozen,
    post,
    raw,
    read_reply,
    settle,
    short,
    status_of,
)


def silent(server: HttpServer, held: ExitStack) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", server.port))
    held.callback(sock.close)
    return sock


async def test_silent_connections_give_way_to_one_that_asks(serve: Serve) -> None:
    server = serve(limits=short(connections=3, connections_per_address=3))
    with ExitStack() as held:
        for _ in range(10):
            silent(server, held)
        await settle(lambda: server.admission.ended == 7)
        assert status_of(await raw(server.port, post())) == 200
    await settle(lambda: server.admission.inside == 0)


async def test_an_idle_connection_gives_way_and_one_with_a_request_never(
    serve: Serve, asked: Asked
) -> None:
    asked.answer = None
    server = serve(limits=short(connections=2, connections_per_address=2))
    waiting = asyncio.create_task(raw(server.port, post()))
    await settle(lambda: asked.replies)
    asked.answer = Reply(200, b"answer")
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(post())
    assert status_of(await read_reply(reader)) == 200
    asked.answer = None
    third = asyncio.create_task(raw(server.port, post()))
    await settle(lambda: len(asked.replies) == 3)
    assert await reader.read() == b"", "the idle one gave way"
    refused = await raw(server.port, b"")
    assert status_of(refused) == 503
    assert b"Retry-After: 1" in refused
    asked.replies[0](Reply(200, b"one"))
    asked.replies[2](Reply(200, b"three"))
    assert (await waiting).endswith(b"one")
    assert (await third).endswith(b"three")
    writer.close()


@pytest.mark.parametrize(
    "sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "a byte", "half"]
)
async def test_before_a_whole_client_hello_no_tls_session_is_made(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    made: list[object] = []
    protocol: Any = asyncio.sslproto.SSLProtocol

    class Counted(protocol):
        def __init__(self, *args: object, **more: object) -> None:
            made.append(self)
            super().__init__(*args, **more)

    monkeypatch.setattr(asyncio.sslproto, "SSLProtocol", Counted)
    authority = Authority(tmp_path)
    server = serve(tls=server_context(authority.issue(None)))
    with ExitStack() as held:
        for _ in range(20):
            silent(server, held).sendall(sent)
        await settle(lambda: server.admission.inside == 20)
        # A session for us and one for the server: what was sent before has been looked at.
        assert status_of(await ask_by_tls(server.port, client_context(authority.path))) == 200
        assert len(made) == 2
        assert server.admission.inside >= 20
        assert server.admission.unknown <= 1
    await settle(lambda: server.admission.inside == 0)


async def test_handshakes_that_stall_are_few_and_give_way(serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = serve(
        tls=server_context(authority.issue(None)), limits=short(newcomers=3, newcomer_grace_s=0.05)
    )
    outgoing = ssl.MemoryBIO()
    client = client_context(authority.path)
    stalled = client.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        stalled.do_handshake()
    hello = outgoing.read()
    with ExitStack() as held:
        for _ in range(10):
            silent(server, held).sendall(hello)
        await settle(lambda: server.admission.unknown == 3)
        assert status_of(await ask_by_tls(server.port, client)) == 200
        assert server.admission.unknown <= 3
    await settle(lambda: server.admission.inside == 0)


async def test_a_failed_handshake_leaves_nothing_for_the_collector(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(tls=server_context(Authority(tmp_path).issue(None)))
    gc.collect()
    gc.disable()
    try:
        with ExitStack() as held:
            for _ in range(5):
                silent(server, held).sendall(b"\x16\x03\x01\x00\x04" + bytes(4))
            await settle(lambda: server.counters["connections_refused"] == 5)
        await settle(lambda: server.admission.inside == 0)
        await settle(
            lambda: not [each for each in gc.get_objects() if isinstance(each, HttpConnection)]
        )
    finally:
        gc.enable()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_connection_that_the_collector_leaves_alone_is_freed_at_its_end(
    serve: Serve, tmp_path: Path, tls: bool, reset: bool
) -> None:
    authority = Authority(tmp_path)
    server = serve(tls=server_context(authority.issue(None)) if tls else None)

    def ask() -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", server.port))
        if tls:
            context = client_context(authority.path)
            sock = context.wrap_socket(sock, server_hostname="localhost")
        sock.sendall(post())
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return sock

    with ExitStack() as held:
        for _ in range(5):
            held.enter_context(await asyncio.to_thread(ask))
        with frozen() as transports:
            before = transports()
            held.close()
            await settle(lambda: server.admission.inside == 0)
            await asyncio.sleep(0.01)
            assert transports() == before - 5


HALF = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 4000000\r\n%s\r\n" + bytes(200_000)


async def test_who_is_not_known_is_refused_before_its_body_is_read(
    serve: Serve, asked: Asked
) -> None:
    server = serve(anonymous_paths=["/health"])
    for head in (b"", b"Authorization: Bearer wrong\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HALF % head)
        reply = await read_reply(reader)
        assert (status_of(reply), code_of(reply)) == (401, "UNAUTHENTICATED")
        assert b"Connection: close" in reply
        assert server.budget.peak <= server.limits.newcomers * 128 * 1024
        writer.close()
    assert asked.requests == []
    known = await raw(server.port, post(b"body", b"Authorization: Bearer alice\r\n"))
    assert status_of(known) == 200


async def test_open_paths_are_open_without_a_body(serve: Serve) -> None:
    server = serve(anonymous_paths=["/health"])
    assert status_of(await raw(server.port, b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")) == 200
    assert status_of(await raw(server.port, post(b"x", path=b"/health"))) == 401
    assert status_of(await raw(server.port, post())) == 401


async def test_bodies_share_one_budget_and_a_small_one_still_passes(
    serve: Serve, asked: Asked
) -> None:
    server = serve(limits=short(budget_bytes=1_000_000, newcomers=2))
    writers = []
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HALF % b"")
        writers.append(writer)
    await settle(lambda: server.counters["refused_THROTTLED"] > 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\n\r\n")
    await asyncio.sleep(0.01)
    writer.write(b"body")
    assert status_of(await read_reply(reader)) == 200
    assert [request.body for request in asked.requests] == [b"body"]
    assert server.budget.peak <= 1_000_000
    for each in [*writers, writer]:
        each.close()
    await settle(lambda: server.budget.used == 0)


@pytest.mark.parametrize("behind_a_request", [False, True])
async def test_a_flood_of_headers_ends_the_connection(
    serve: Serve, asked: Asked, behind_a_request: bool
) -> None:
    asked.answer = None
    server = serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    if behind_a_request:
        writer.write(post())
        await settle(lambda: asked.requests)
    writer.write(b"GET /x HTTP/1.1\r\n" + HOST)
    sent = 0
    with suppress(ConnectionError):
        for n in range(120):
            writer.write(b"X%d: " % n + b"y" * 8000 + b"\r\n")
            sent += 8000
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await reader.read()
    assert sent <= 400_000, "the head was taken whole"
    writer.close()
    await settle(lambda: server.admission.inside == 0)


async def test_a_client_that_does_not_read_its_reply_is_cut_off(
    serve: Serve, asked: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(http_connection, "UNREAD_S", 0.05)
    monkeypatch.setattr(http_connection, "SLOWEST_BYTES_PER_S", 1e12)
    asked.answer = Reply(200, bytes(20_000_000))
    server = serve(unix_socket=tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(tmp_path / "s"))
        sock.sendall(post())
        await settle(lambda: asked.requests)
        await settle(lambda: server.admission.inside == 0)


async def test_a_flood_in_one_connection_lets_others_ask_and_is_not_hoarded(
    serve: Serve, asked: Asked
) -> None:
    server = serve()
    flood = b"".join(b"GET /flood HTTP/1.1\r\n" + HOST + b"\r\n" for _ in range(5000))
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(flood)
    await settle(lambda: asked.requests)
    assert status_of(await raw(server.port, post(path=b"/other"))) == 200
    paths = [request.path for request in asked.requests]
    assert paths.index("/other") < 2500, "it was served when half of the flood was not"
    assert max(len(each._parser.arrived) for each in server.connections) <= 64
    writer.close()
