"""The HTTP server: handlers that fail, clients that leave, and where it listens."""

import asyncio
import asyncio.sslproto

import pytest
import structlog

from runtime.http.exposure import InsecureListenerError, check_listener, is_loopback
from runtime.http.requests import Reply
from tests.unit.runtime.http.http_kit import (
    Asked,
    Serve,
    code_of,
    post,
    raw,
    settle,
    short,
    status_of,
)

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
