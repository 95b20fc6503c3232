"""The HTTP server: who calls, by token, socket or certificate, and who is refused."""

import asyncio
import asyncio.sslproto
import os
import socket
import ssl
import stat
from pathlib import Path

import pytest
import structlog

from runtime.http.requests import Caller, Reply
from runtime.sockets.credentials import PeerCertificate, ShownToken
from runtime.sockets.tls import client_context, server_context
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import (
    HOST,
    Asked,
    Serve,
    ask_by_tls,
    code_of,
    post,
    raw,
    read_reply,
    settle,
    status_of,
)

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

    def judge(
        certificate: PeerCertificate | None, token: ShownToken | None, uid: int | None, address: str
    ) -> Caller | Reply:
        assert token is not None
        if token.text in removed:
            return Reply(401)
        return Caller(f"User:{token.text}", "token", address)

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
