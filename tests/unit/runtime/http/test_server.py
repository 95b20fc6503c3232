"""The HTTP shell: which requests reach the handler, and which never do."""

import asyncio
import asyncio.sslproto
import gc
import gzip
import os
import socket
import ssl
import stat
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from runtime.http import connection as http_connection
from runtime.http.connection import HttpConnection
from runtime.http.exposure import InsecureListenerError, check_listener, is_loopback
from runtime.http.requests import Caller, Reply
from runtime.http.server import HttpServer
from runtime.sockets.tls import client_context, server_context
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import (
    Asked,
    code_of,
    frozen,
    raw,
    read_reply,
    short,
    status_of,
)

Serve = Callable[..., HttpServer]
HOST = b"Host: localhost\r\n"


def post(body: bytes = b"", more: bytes = b"", path: bytes = b"/x") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + more + length + b"\r\n" + body


async def settle(until: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not until():  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)


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


@pytest.mark.parametrize("method", [b"CONNECT", b"PROPFIND", b"M-SEARCH"])
async def test_other_methods_are_refused(serve: Serve, asked: Asked, method: bytes) -> None:
    reply = await raw(serve().port, method + b" /x HTTP/1.1\r\n" + HOST + b"\r\n")
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


# -- who calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "principal"),
    [
        (b"Bearer alice", "User:alice"),
        (b"bearer   alice ", "User:alice"),
        (b"Basic YWxpY2U6eA==", "User:ANONYMOUS"),
    ],
)
async def test_a_bearer_token_says_who_calls_and_stays_out_of_the_request(
    serve: Serve, asked: Asked, value: bytes, principal: str
) -> None:
    await raw(serve().port, post(b"", b"Authorization: " + value + b"\r\n"))
    assert asked.requests[0].caller.principal == principal
    assert "authorization" not in asked.requests[0].headers


async def test_a_caller_that_is_not_authenticated_is_refused_before_its_body_is_read(
    serve: Serve, asked: Asked
) -> None:
    head = (
        b"POST /x HTTP/1.1\r\n" + HOST + b"Authorization: Bearer wrong\r\nContent-Length: 9\r\n\r\n"
    )
    reply = await raw(serve().port, head)
    assert (status_of(reply), code_of(reply)) == (401, "UNAUTHENTICATED")
    assert asked.requests == []


async def test_two_tokens_are_refused(serve: Serve) -> None:
    reply = await raw(serve().port, post(b"", b"Authorization: Bearer a\r\n" * 2))
    assert status_of(reply) == 400


async def test_on_a_unix_socket_the_system_says_who_calls(
    serve: Serve, asked: Asked, tmp_path: Path
) -> None:
    path = tmp_path / "admin.sock"
    server = serve(unix_socket=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(b"GET /x HTTP/1.1\r\nHost: anything\r\n\r\n")
    assert status_of(await read_reply(reader)) == 200
    writer.close()
    assert asked.requests[0].caller == Caller(f"User:uid-{os.getuid()}", "unix-socket", "")
    await server.stop(0.05)
    assert not path.exists()


async def test_a_unix_socket_of_a_dead_process_is_taken_over_and_a_live_one_not(
    serve: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    serve(unix_socket=path)
    with pytest.raises(OSError, match=r"admin\.sock.*another process listens on it"):
        serve(unix_socket=path)


# -- TLS -----------------------------------------------------------------------------------------


async def ask_by_tls(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    try:
        return await read_reply(reader)
    finally:
        writer.close()


async def test_a_certificate_says_who_calls(serve: Serve, asked: Asked, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = serve(tls=server_context(authority.issue(None, "server")))
    client = client_context(authority.path, authority.issue("logberg://c/broker/7", "client"))
    assert status_of(await ask_by_tls(server.port, client)) == 200
    assert status_of(await ask_by_tls(server.port, client_context(authority.path))) == 200
    assert [request.caller.principal for request in asked.requests] == [
        "User:logberg://c/broker/7",
        "User:ANONYMOUS",
    ]


async def test_a_client_of_another_authority_never_reaches_the_handler(
    serve: Serve, asked: Asked, tmp_path: Path
) -> None:
    authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another CA")
    server = serve(tls=server_context(authority.issue(None, "server")))
    foreign = client_context(authority.path, other.issue("logberg://c/broker/7"))
    try:
        reply = await ask_by_tls(server.port, foreign)
    except OSError:
        reply = b""
    assert reply == b""
    assert asked.requests == []
    await settle(lambda: server.admission.inside == 0)


async def test_plain_http_on_a_tls_port_is_told_so(
    serve: Serve, asked: Asked, tmp_path: Path
) -> None:
    server = serve(tls=server_context(Authority(tmp_path).issue(None)))
    reply = await raw(server.port, post())
    assert status_of(reply) == 400
    assert b"this port speaks TLS" in reply
    assert asked.requests == []
    await settle(lambda: server.admission.inside == 0)


async def test_reloaded_tls_holds_for_new_connections(serve: Serve, tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new", "new CA")
    server = serve(tls=server_context(old.issue(None)))
    assert status_of(await ask_by_tls(server.port, client_context(old.path))) == 200
    server.reload_tls(server_context(new.issue(None)))
    assert status_of(await ask_by_tls(server.port, client_context(new.path))) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        await ask_by_tls(server.port, client_context(old.path))


async def test_a_certificate_with_several_uris_is_nobodys(
    serve: Serve, asked: Asked, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    server = serve(tls=server_context(authority.issue(None, "server")))
    files = authority.issue(("user://c/alice", "user://c/admin"), "client")
    reply = await ask_by_tls(server.port, client_context(authority.path, files))
    assert (status_of(reply), code_of(reply)) == (401, "UNAUTHENTICATED")
    assert b"2 URIs" in reply
    assert b"user://c/admin" in reply
    assert asked.requests == []


async def test_who_is_not_trusted_any_more_loses_its_connection(
    serve: Serve, asked: Asked, tmp_path: Path
) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new", "new CA")
    server = serve(tls=server_context(old.issue(None, "server")))
    context = client_context(old.path, old.issue("user://c/alice", "client"))
    kept = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    reader, writer = kept
    writer.write(post())
    assert status_of(await read_reply(reader)) == 200
    server.reload_tls(server_context(old.issue(None, "renewed")))
    writer.write(post())
    assert status_of(await read_reply(reader)) == 200, "only the server's certificate was renewed"
    server.reload_tls(server_context(new.issue(None, "server")))
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()


async def test_a_token_that_was_removed_ends_what_it_let_in(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    removed: list[str] = []

    def judge(uri: str | None, token: str | None, uid: int | None, address: str) -> Caller | Reply:
        if token in removed:
            return Reply(401)
        return Caller(f"User:{token}", "token", address)

    server = serve(authenticate=judge)
    going = [
        asyncio.create_task(raw(server.port, post(more=b"Authorization: Bearer %s\r\n" % name)))
        for name in (b"alice", b"bob")
    ]
    await settle(lambda: len(asked.replies) == 2)
    removed.append("alice")
    assert server.judge_again() == 1
    assert await going[0] == b""
    for reply in asked.replies:
        reply(Reply(200, b"for bob"))
    assert (await going[1]).endswith(b"for bob")


@pytest.mark.parametrize("name", [b"X-Logberg-Reason", b"Authorization", b"Host", b"Accept"])
async def test_a_header_that_is_not_utf_8_is_refused_by_name(
    serve: Serve, asked: Asked, name: bytes
) -> None:
    host = b"" if name == b"Host" else HOST
    sent = b"GET /x HTTP/1.1\r\n" + host + name + b": Bearer \xff\xfe\r\n\r\n"
    reply = await raw(serve().port, sent)
    assert (status_of(reply), code_of(reply)) == (400, "INVALID_REQUEST")
    assert name.lower() in reply.lower()
    assert asked.requests == []


async def test_a_header_in_utf_8_is_taken(serve: Serve, asked: Asked) -> None:
    sent = post(more="X-Logberg-Reason: größer\r\n".encode())
    assert status_of(await raw(serve().port, sent)) == 200
    assert asked.requests[0].headers["x-logberg-reason"] == "größer"


async def test_a_refused_attempt_is_told_with_who_where_and_why(serve: Serve, asked: Asked) -> None:
    server = serve()
    asked.answer = Reply(403, b'{"message": "not yours"}', {"content-type": "application/json"})
    with structlog.testing.capture_logs() as logs:
        for token in (b"wrong", b"wrong", b"alice"):
            await raw(server.port, post(more=b"Authorization: Bearer %s\r\n" % token))
    told = [entry for entry in logs if entry["event"] == "request_refused"]
    assert [(e["who"][:18], e["address"], e["route"], e["why"]) for e in told] == [
        ("token with sha256 ", "127.0.0.1", "POST /x", "an unknown token"),
        ("User:alice", "127.0.0.1", "POST /x", "not yours"),
    ]
    assert server.refusals.counters["request_refused"] == 3
    assert "wrong" not in str(told)


# -- handlers that misbehave, clients that leave ---------------------------------------------------


async def test_a_handler_that_fails_is_answered_for_and_the_next_request_works(
    serve: Serve, asked: Asked
) -> None:
    def fail(request: object, reply: object) -> None:
        raise KeyError("secret detail")

    server = serve()
    server._handling._handler = fail
    reply = await raw(server.port, post())
    assert (status_of(reply), code_of(reply)) == (500, "UNKNOWN_SERVER_ERROR")
    assert b"secret detail" not in reply
    server._handling._handler = asked
    assert status_of(await raw(server.port, post())) == 200


async def test_a_handler_that_never_answers_is_answered_for(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve(limits=short(reply_s=0.05))
    reply = await raw(server.port, post())
    assert (status_of(reply), code_of(reply)) == (503, "REQUEST_TIMED_OUT")
    asked.replies[0](Reply(200, b"too late"))


async def test_a_client_that_leaves_leaves_nothing_behind(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve()
    before = len(asyncio.all_tasks())
    for _ in range(10):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(post())
        await writer.drain()
        await settle(lambda: len(asked.replies) == len(asked.requests))
        writer.close()
    await settle(lambda: len(asked.requests) == 10 and server.admission.inside == 0)
    await settle(lambda: len(asyncio.all_tasks()) == before)
    assert server.counters["abandoned"] == 10
    for reply in asked.replies:
        reply(Reply(200, b"to nobody"))


@pytest.mark.parametrize("later", [False, True])
async def test_a_second_answer_is_dropped_and_logged(
    serve: Serve, asked: Asked, later: bool
) -> None:
    if later:
        asked.answer = None
    server = serve()
    asking = asyncio.create_task(raw(server.port, post()))
    await settle(lambda: asked.replies)
    with structlog.testing.capture_logs() as logs:
        if later:
            asked.replies[0](Reply(200, b"the first one"))
        asked.replies[0](Reply(500, b"the second one"))
    assert status_of(await asking) == 200
    assert server.counters["answered_twice"] == 1
    assert [entry["event"] for entry in logs] == ["http_answered_twice"]
    asked.answer = Reply(200)
    assert status_of(await raw(server.port, post())) == 200


async def test_stop_lets_a_request_end_and_closes_the_rest(serve: Serve, asked: Asked) -> None:
    asked.answer = None
    server = serve()
    port = server.port
    waiting = asyncio.create_task(raw(port, post()))
    idle_reader, idle = await asyncio.open_connection("127.0.0.1", port)
    await settle(lambda: asked.replies)
    stopping = asyncio.create_task(server.stop(5))
    await asyncio.sleep(0.01)
    asked.replies[0](Reply(200, b"the last one"))
    await stopping
    assert (await waiting).endswith(b"the last one")
    assert await idle_reader.read() == b""
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        await raw(port, post())


# -- where it listens ------------------------------------------------------------------------------


async def test_a_port_in_use_is_said_clearly(serve: Serve) -> None:
    port = serve().port
    with pytest.raises(OSError, match=rf"port {port} on 127\.0\.0\.1 is in use by another"):
        serve(port=port)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.1", "node-1.example"])
def test_beyond_loopback_tls_is_needed_or_the_operators_word(host: str) -> None:
    with pytest.raises(InsecureListenerError, match=r"without TLS.*--insecure-network"):
        check_listener(host, tls=False, insecure_network=False)
    check_listener(host, tls=True, insecure_network=False)
    check_listener(host, tls=False, insecure_network=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8", "[::1]"])
def test_on_loopback_tls_is_not_needed(host: str) -> None:
    assert is_loopback(host)
    check_listener(host, tls=False, insecure_network=False)


async def test_a_server_will_not_start_insecure(serve: Serve) -> None:
    with pytest.raises(InsecureListenerError):
        serve(host="0.0.0.0")


# -- crowds at the door ----------------------------------------------------------------------------


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
    assert max(len(each._messages) for each in server.manager.connections) <= 64
    writer.close()
