"""The HTTP server: which requests reach the handler, and which never do."""

import asyncio
import asyncio.sslproto
import gzip

import pytest

from runtime.http import connection as http_connection
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

# -- what reaches the handler --------------------------------------------------------------------


async def test_a_request_comes_as_it_was_sent(serve: Serve, asked: Asked) -> None:
    asked.answer = Reply(201, b"made", {"content-type": "text/plain", "x-offset": "7"})
    reply = await raw(
        serve().port,
        post(b"\x00body\xff", b"X-Two: a\r\nx-two: b\r\nCookie: secret\r\n", b"/a%20b/c?q=1%26&r="),
    )
    [request] = asked.requests
    assert (request.method, request.path, request.body) == ("POST", "/a b/c", b"\x00body\xff")
    assert request.query == {"q": "1&", "r": ""}
    assert request.headers == {"host": "localhost", "x-two": "a, b", "content-length": "6"}
    assert request.caller == Caller("User:ANONYMOUS", "none", "127.0.0.1")
    assert status_of(reply) == 201
    assert b"\r\nx-offset: 7\r\n" in reply
    assert b"\r\ncontent-type: text/plain\r\n" in reply.lower()
    assert b"\r\nServer: logberg\r\n" in reply
    assert reply.endswith(b"\r\n\r\nmade")


async def test_a_reply_may_come_later(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    waiting = asyncio.create_task(raw(serve().port, post()))
    await settle(lambda: asked.replies)
    assert not waiting.done()
    asked.replies[0](Reply(200, b"later"))
    assert (await waiting).endswith(b"later")


async def test_requests_of_one_connection_are_answered_in_their_order(
    serve: Serve, asked: Asked
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    writer.write(b"".join(post(b"%d" % n) for n in range(20)))
    for _ in range(20):
        assert status_of(await read_reply(reader)) == 200
    assert [request.body for request in asked.requests] == [b"%d" % n for n in range(20)]
    writer.close()


async def test_a_body_in_chunks_is_put_together(serve: Serve, asked: Asked) -> None:
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    await raw(serve().port, head + b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")
    assert asked.requests[0].body == b"abcd"


async def test_a_client_that_waits_for_leave_gets_it(serve: Serve, asked: Asked) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", serve().port)
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    writer.write(head)
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"body")
    assert status_of(await read_reply(reader)) == 200
    assert asked.requests[0].body == b"body"
    writer.close()


async def test_a_body_of_exactly_the_cap_is_taken(serve: Serve, asked: Asked) -> None:
    server = serve(limits=short(body_bytes=1_000_000))
    assert status_of(await raw(server.port, post(bytes(1_000_000)))) == 200
    assert len(asked.requests[0].body) == 1_000_000


# -- what never does -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [11, 100_000, 5_000_000])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_beyond_the_cap_is_refused(
    serve: Serve, asked: Asked, size: int, chunked: bool
) -> None:
    server = serve(limits=short(body_bytes=10))
    if chunked:
        head = b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        sent = head + b"%x\r\n" % size + bytes(size) + b"\r\n0\r\n\r\n"
    else:
        sent = post(bytes(size))
    reply = await raw(server.port, sent)
    assert (status_of(reply), code_of(reply)) == (413, "BODY_TOO_LARGE")
    assert asked.requests == []


async def test_a_claimed_size_is_refused_before_a_byte_of_it_comes(serve: Serve) -> None:
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 4000000000\r\n\r\n"
    reply = await raw(serve().port, head)
    assert (status_of(reply), code_of(reply)) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("body", [b"", b"half"])
async def test_a_half_sent_body_is_refused_at_the_deadline(
    serve: Serve, asked: Asked, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A client that did not send its body is not waited for a second time.
    monkeypatch.setattr(http_connection, "LINGER_S", 60.0)
    server = serve(limits=short(body_s=0.05))
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 8\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head + body)
    reply = await read_reply(reader)
    assert (status_of(reply), code_of(reply)) == (408, "BODY_TIMED_OUT")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    assert asked.requests == []


async def test_a_body_that_drips_is_refused_at_the_deadline_too(serve: Serve, asked: Asked) -> None:
    server = serve(limits=short(body_s=0.1))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n")

    async def drip() -> None:
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    assert status_of(await read_reply(reader)) == 408
    dripping.cancel()
    writer.close()
    assert asked.requests == []


@pytest.mark.parametrize("sent", [b"", b"GET /x HT", b"GET /x HTTP/1.1\r\nHost: loc"])
async def test_a_half_sent_head_is_closed_at_its_deadline(
    serve: Serve, asked: Asked, sent: bytes
) -> None:
    server = serve(limits=short(head_s=0.05))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    assert asked.requests == []
    await settle(lambda: server.admission.inside == 0)


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate", b"br", b"zstd", b"identity", b"x"])
async def test_an_encoded_body_is_refused(serve: Serve, asked: Asked, encoding: bytes) -> None:
    bomb = gzip.compress(bytes(1_000_000))
    reply = await raw(serve().port, post(bomb, b"Content-Encoding: " + encoding + b"\r\n"))
    assert (status_of(reply), code_of(reply)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert asked.requests == []


@pytest.mark.parametrize(
    "target",
    [
        b"/a/../b",
        b"/..",
        b"/a/./b",
        b"/%2e%2e/b",
        b"/a%2fb",
        b"/a%00b",
        b"/a%0ab",
        b"/a\\b",
        b"/a%5cb",
        b"/%ff",
        b"/a?x=1&x=2",
        b"/a?%ff=1",
        b"/a?" + b"&".join(b"p%d=1" % n for n in range(65)),
        b"http://localhost/a",
        b"*",
        b"/a b",
        b"/a#b",
    ],
)
async def test_a_target_with_two_meanings_is_refused(
    serve: Serve, asked: Asked, target: bytes
) -> None:
    reply = await raw(serve().port, b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (status_of(reply), code_of(reply)) == (400, "INVALID_REQUEST")
    assert asked.requests == []


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"garbage\r\n\r\n",
        b"GET /x HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET /x HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /x HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 20_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /x HTTP/1.1\r\n" + HOST + b"".join(b"X%d: y\r\n" % n for n in range(300)) + b"\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /x HTTP/1.1\r\n"
        + HOST
        + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        b"GET /x HTTP/1.1\r\n\r\n",
        b"GET /x HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    ],
)
async def test_what_is_no_proper_http_is_refused_in_our_form(
    serve: Serve, asked: Asked, sent: bytes
) -> None:
    reply = await raw(serve().port, sent)
    assert (status_of(reply), code_of(reply)) == (400, "INVALID_REQUEST")
    assert asked.requests == []


@pytest.mark.parametrize("method", [b"TRACE", b"OPTIONS", b"PROPFIND", b"M-SEARCH", b"QUERY"])
async def test_the_handler_refuses_other_methods(serve: Serve, asked: Asked, method: bytes) -> None:
    """It knows which ones the path takes."""
    await raw(serve().port, method + b" /x HTTP/1.1\r\n" + HOST + b"\r\n")
    assert [request.method for request in asked.requests] == [method.decode()]


async def test_no_tunnel_is_made(serve: Serve, asked: Asked) -> None:
    reply = await raw(serve().port, b"CONNECT example.org:443 HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (status_of(reply), code_of(reply)) == (405, "METHOD_NOT_ALLOWED")
    assert asked.requests == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost", 200),
        (b"localhost:1234", 200),
        (b"127.0.0.1:1", 200),
        (b"[::1]:80", 200),
        (b"LOCALHOST.", 200),
        (b"my.alias:99", 200),
        (b"evil.example", 403),
        (b"127.0.0.1.evil.example", 403),
        (b"localhost.evil.example:80", 403),
        (b"192.0.2.1", 403),
    ],
)
async def test_on_loopback_a_foreign_host_is_turned_away(
    serve: Serve, asked: Asked, host: bytes, status: int
) -> None:
    server = serve(allowed_hosts=["My.Alias"])
    reply = await raw(server.port, b"GET /x HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert status_of(reply) == status
    assert len(asked.requests) == (status == 200)


async def test_beyond_loopback_a_host_may_have_any_name(serve: Serve) -> None:
    server = serve(host="0.0.0.0", insecure_network=True)
    assert (
        status_of(await raw(server.port, b"GET /x HTTP/1.1\r\nHost: node-1.example\r\n\r\n")) == 200
    )


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"http://localhost", 200),
        (b"https://localhost", 200),
        (b"http://evil.example", 403),
        (b"http://localhost:9999", 403),
        (b"null", 403),
    ],
)
async def test_a_page_of_another_site_is_turned_away(
    serve: Serve, origin: bytes, status: int
) -> None:
    reply = await raw(serve().port, post(b"", b"Origin: " + origin + b"\r\n"))
    assert status_of(reply) == status
