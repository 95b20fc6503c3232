"""A connection and its requests: order, deadlines, refusals that are read, and our own defects."""

import asyncio
from typing import Any

import pytest
import structlog

from runtime.http import connection as http_connection
from runtime.http.connection import AHEAD_BYTES_MAX, HttpConnection
from runtime.http.parsing import PIECE_BYTES
from runtime.http.requests import Caller, Reply
from tests.unit.runtime.http.http_kit import (
    HOST,
    Asked,
    Serve,
    code_of,
    post,
    raw,
    read_reply,
    settle,
    short,
    status_of,
)

GET = b"GET /x HTTP/1.1\r\n" + HOST + b"\r\n"


async def to_the_end(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(10):
        said = await reader.read()
    writer.close()
    return said


# -- what a reply looks like -----------------------------------------------------------------------


async def test_the_answer_to_head_has_the_length_and_no_body(serve: Serve) -> None:
    said = await to_the_end(
        serve().port,
        GET.replace(b"GET", b"HEAD") + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
    )
    first, _, rest = said.partition(b"\r\n\r\n")
    assert b"Content-Length: 6" in first
    assert rest.startswith(b"HTTP/1.1 200")
    assert rest.endswith(b"\r\n\r\nanswer")


@pytest.mark.parametrize("asks", [b"", b"Connection: keep-alive\r\n"])
async def test_an_old_client_gets_its_connection_closed_unless_it_asks(
    serve: Serve, asked: Asked, asks: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    writer.write(b"GET /x HTTP/1.0\r\n" + HOST + asks + b"\r\n")
    reply = await read_reply(reader)
    assert (b"\r\nConnection: keep-alive\r\n" in reply) == bool(asks)
    assert (b"\r\nConnection: close\r\n" in reply) == (not asks)
    if asks:
        writer.write(GET)
        assert status_of(await read_reply(reader)) == 200
    else:
        assert await reader.read() == b""
    writer.close()


async def test_an_old_client_gets_a_long_reply_without_chunks(serve: Serve, asked: Asked) -> None:
    asked.answer = Reply(200, b"", {}, (bytes(100_000) for _ in range(30)))
    said = await to_the_end(serve().port, b"GET /x HTTP/1.0\r\n" + HOST + b"\r\n")
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"ransfer-" not in head
    assert body == bytes(3_000_000)


@pytest.mark.parametrize("status", [204, 304])
async def test_a_reply_that_may_have_no_body_names_no_length(
    serve: Serve, asked: Asked, status: int
) -> None:
    asked.answer = Reply(status)
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    writer.write(GET)
    assert b"content-length" not in (await read_reply(reader)).lower()
    writer.close()


@pytest.mark.parametrize("value", ["a\r\nx-made: up", "a\nb", "a\rb", "a\0b"])
async def test_a_handlers_header_with_a_line_end_is_never_sent(
    serve: Serve, asked: Asked, value: str
) -> None:
    asked.answer = Reply(200, b"", {"x-given": value})
    with structlog.testing.capture_logs() as logs:
        said = await to_the_end(serve().port, GET)
    assert b"x-given" not in said
    assert b"made" not in said
    assert [entry["event"] for entry in logs] == ["http_handler_failed"]


# -- refusals are read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"garbage\r\n\r\n", "INVALID_REQUEST"),
        (
            b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            "INVALID_REQUEST",
        ),
        (post(bytes(100))[:-100], "BODY_TOO_LARGE"),
    ],
    ids=["no HTTP", "a broken chunk", "too large"],
)
async def test_who_goes_on_sending_still_reads_its_refusal(
    serve: Serve, asked: Asked, sent: bytes, code: str
) -> None:
    server = serve(limits=short(body_bytes=10))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    await settle(lambda: sum(server.counters.values()))
    for _ in range(20):
        writer.write(bytes(5))
        await writer.drain()
        await asyncio.sleep(0)
    assert code_of(await read_reply(reader)) == code
    writer.close()
    assert asked.requests == []


async def test_who_never_stops_sending_after_a_refusal_is_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "LINGER_S", 0.05)
    server = serve(limits=short(body_bytes=10))
    for sent in (b"garbage\r\n\r\n", post(bytes(100_000))[:-1]):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        await settle(lambda: server.connections)
        await settle(lambda: not server.connections)
        writer.close()


async def test_a_refused_body_that_ends_leaves_the_connection_to_the_next_request(
    serve: Serve, asked: Asked
) -> None:
    server = serve(limits=short(body_bytes=10))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(post(bytes(100_000)) + GET)
    assert status_of(await read_reply(reader)) == 413
    assert status_of(await read_reply(reader)) == 200
    assert len(asked.requests) == 1
    writer.close()


async def test_leave_to_send_a_body_is_not_given_to_who_may_not(serve: Serve) -> None:
    server = serve(limits=short(body_bytes=10))
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\nExpect: 100-continue\r\n"
    for more, status in ((b"", 413), (b"Authorization: Bearer wrong\r\n", 401)):
        assert status_of(await raw(server.port, head + more + b"\r\n")) == status
    other = head.replace(b"100-continue", b"something").replace(b": 100\r", b": 9\r")
    assert status_of(await raw(server.port, other + b"\r\n")) == 417


async def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(serve: Serve) -> None:
    server = serve(limits=short(body_bytes=10))
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    reply = await raw(server.port, head + b"b\r\n" + bytes(11))
    assert (status_of(reply), code_of(reply)) == (413, "BODY_TOO_LARGE")


async def test_each_request_of_a_connection_names_this_server(serve: Serve, asked: Asked) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    foreign = GET.replace(b"localhost", b"evil.example")
    page = GET.replace(HOST, HOST + b"Origin: http://evil.example\r\n")
    for sent, status in ((GET, 200), (GET, 200), (foreign, 403), (page, 403), (GET, 200)):
        writer.write(sent)
        assert status_of(await read_reply(reader)) == status
    assert len(asked.requests) == 3
    writer.close()


# -- order, and what is read ahead -----------------------------------------------------------------


async def test_behind_a_request_under_way_little_is_read(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await settle(lambda: asked.replies)
    [connection] = server.connections
    large = post(bytes(3_000_000))
    writer.write(large)
    await asyncio.sleep(0.05)
    parser = connection._parser
    held = sum(each.size for each in parser.arrived) + len(connection._tail)
    assert held <= AHEAD_BYTES_MAX + 64 * 1024 + 256 * 1024 + PIECE_BYTES
    asked.answer = Reply(200, b"second")
    asked.replies[0](Reply(200, b"first"))
    assert (await read_reply(reader)).endswith(b"first")
    assert (await read_reply(reader)).endswith(b"second")
    assert [len(request.body) for request in asked.requests] == [0, 3_000_000]
    writer.close()


async def test_many_requests_at_once_are_all_answered_in_order(serve: Serve, asked: Asked) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    count = 3000
    writer.write(b"".join(post(b"%d" % n) for n in range(count)))
    for _ in range(count):
        assert status_of(await read_reply(reader)) == 200
    assert [request.body for request in asked.requests] == [b"%d" % n for n in range(count)]
    writer.close()


async def test_a_connection_begins_one_request_in_a_pass(serve: Serve, asked: Asked) -> None:
    server = serve()
    began: list[int] = []
    passes = [0]

    def count() -> None:
        passes[0] += 1
        asyncio.get_running_loop().call_soon(count)

    def note(request: Any, reply: Any) -> None:
        began.append(passes[0])
        reply(Reply(200))

    server._handling._handler = note
    count()
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET * 30)
    await settle(lambda: len(began) == 30)
    assert len(set(began)) == 30
    writer.close()


# -- deadlines -------------------------------------------------------------------------------------


async def test_an_idle_connection_ends_after_a_reply_that_took_long(
    serve: Serve, asked: Asked
) -> None:
    """The timer of the reply is due much later than the one of the next head."""
    asked.answer = None
    server = serve(limits=short(head_s=0.1, reply_s=1000.0))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await settle(lambda: asked.replies)
    await asyncio.sleep(0.3)
    asked.replies[0](Reply(200, b"late"))
    assert (await read_reply(reader)).endswith(b"late")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()


async def test_requests_one_after_another_keep_a_connection_open(serve: Serve) -> None:
    server = serve(limits=short(head_s=0.2))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for _ in range(6):
        writer.write(GET)
        assert status_of(await read_reply(reader)) == 200
        await asyncio.sleep(0.1)
    writer.close()


async def test_a_request_that_is_answered_at_once_sets_no_timer_and_makes_no_task(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await read_reply(reader)
    [connection] = server.connections
    loop = asyncio.get_running_loop()
    made: list[str] = []
    monkeypatch.setattr(loop, "call_at", lambda *_: made.append("timer"))
    monkeypatch.setattr(loop, "create_task", lambda *_: made.append("task"))
    monkeypatch.setattr(loop, "create_future", lambda: made.append("future"))
    for _ in range(10):
        connection.data_received(post(b"body"))
    monkeypatch.undo()
    assert server.counters["requests"] == 11
    assert made == []
    writer.close()


# -- the end ---------------------------------------------------------------------------------------


async def test_a_reply_after_stop_has_begun_says_that_the_connection_ends(
    serve: Serve, asked: Asked
) -> None:
    asked.answer = None
    server = serve()
    waiting = asyncio.create_task(raw(server.port, GET))
    await settle(lambda: asked.replies)
    stopping = asyncio.create_task(server.stop(5))
    await asyncio.sleep(0.01)
    asked.replies[0](Reply(200, b"the last one"))
    assert b"\r\nConnection: close\r\n" in await waiting
    await stopping


async def test_stop_ends_what_takes_longer_than_its_grace(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve()
    waiting = asyncio.create_task(raw(server.port, GET))
    await settle(lambda: asked.replies)
    await server.stop(0.02)
    assert await waiting == b""
    assert server.counters["abandoned"] == 1
    await settle(lambda: not server.connections)


async def test_a_defect_before_the_handler_costs_one_request(serve: Serve) -> None:
    def broken(*_: object) -> Caller:
        raise KeyError("secret detail")

    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    server = serve(authenticate=broken)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for _ in range(3):
        writer.write(GET * 2)
        for _ in range(2):
            reply = await read_reply(reader)
            assert (status_of(reply), code_of(reply)) == (500, "UNKNOWN_SERVER_ERROR")
            assert b"secret detail" not in reply
    assert reported == []
    writer.close()


async def test_a_connection_that_ends_leaves_no_reference(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve()
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET + post(bytes(100))[:-50])
    await settle(lambda: asked.replies)
    [connection] = server.connections
    writer.transport.abort()
    await settle(lambda: not server.connections)
    assert isinstance(connection, HttpConnection)
    assert connection.under_way is None
    assert connection._timer is None
    assert connection._parser._parser is None
    connection.write(b"to nobody")
    asked.replies[0](Reply(200, b"to nobody"))
