"""Requests over HTTP: every way in which they can end, once each."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from runtime.defects import watch_loop
from runtime.http.client import HttpRequester
from runtime.http.requests import Reply, Request, Unreachable
from runtime.http.server import HttpServer
from runtime.sockets.tls import client_context, server_context
from tests.conformance.ports import free_port
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import Asked, make_server

Client = Callable[..., HttpRequester]
GET = Request("GET", "/x")


@pytest.fixture
async def server(asked: Asked) -> AsyncIterator[HttpServer]:
    server = make_server(asked)
    server.start()
    yield server
    await server.stop(0.05)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made: list[HttpRequester] = []

    def make(**more: Any) -> HttpRequester:
        made.append(HttpRequester(log=structlog.get_logger(), **more))
        return made[-1]

    yield make
    for requester in made:
        await requester.close()
    # aiohttp closes its sockets one turn of the loop later.
    await asyncio.sleep(0.01)


async def ask(
    requester: HttpRequester, target: str, request: Request = GET, deadline_s: float = 5.0
) -> Reply | Unreachable:
    outcome: asyncio.Future[Reply | Unreachable] = asyncio.get_running_loop().create_future()
    requester.request(target, request, outcome.set_result, deadline_s)
    assert not outcome.done(), "called back within the call"
    return await outcome


def url(port: int, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{port}"


class RawServer:
    """Answers each connection with given bytes, once something came."""

    def __init__(self, answer: bytes, *, close: bool = True) -> None:
        self._answer, self._close = answer, close
        self.came = asyncio.Event()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return url(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        self.came.set()
        writer.write(self._answer)
        if not self._close:
            await reader.read()
        writer.close()


async def test_a_request_goes_out_and_the_reply_comes_in(
    server: HttpServer, client: Client, asked: Asked
) -> None:
    asked.answer = Reply(409, b"\x00no", {"X-Code": "conflict", "content-type": "a/b"})
    request = Request(
        "POST",
        "/v1/a b%/ü",
        b"\xffbody",
        {"q": "1&2", "e": ""},
        {"content-type": "application/msgpack", "x-logberg-reason": "why"},
    )
    reply = await ask(client(token="alice"), url(server.port), request)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body) == (409, b"\x00no")
    assert reply.headers["x-code"] == "conflict"
    [seen] = asked.requests
    assert (seen.method, seen.path, seen.body) == (request.method, request.path, request.body)
    assert seen.query == request.query
    assert seen.headers.items() >= request.headers.items()
    assert seen.caller.principal == "User:alice"


async def test_connections_are_kept(server: HttpServer, client: Client) -> None:
    requester = client()
    for _ in range(5):
        assert isinstance(await ask(requester, url(server.port)), Reply)
    assert server.admission.inside == 1


async def test_nobody_listening_is_refused(client: Client) -> None:
    outcome = await ask(client(), url(free_port()))
    assert isinstance(outcome, Unreachable)
    assert outcome.refused
    assert "Connect call failed" in outcome.reason or "refused" in outcome.reason


@pytest.mark.parametrize("target", ["http://no-such-host.invalid:1", "http://[", "nonsense"])
async def test_an_address_that_leads_nowhere_is_never_connected(
    client: Client, target: str
) -> None:
    outcome = await ask(client(), target)
    assert isinstance(outcome, Unreachable)
    assert outcome.refused


async def test_no_answer_in_time_is_unreachable_but_not_refused(
    server: HttpServer, client: Client, asked: Asked
) -> None:
    asked.answer = None
    outcome = await ask(client(), url(server.port), deadline_s=0.05)
    assert outcome == Unreachable("no answer within 0.05 s")


async def test_a_dial_without_an_answer_ends_at_the_deadline(client: Client) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        outcome = await ask(client(), url(full.getsockname()[1]), deadline_s=0.1)
        for filler in fillers:
            filler.close()
    assert isinstance(outcome, Unreachable)


async def test_an_abandoned_request_never_calls_back(
    server: HttpServer, client: Client, asked: Asked
) -> None:
    asked.answer = None
    outcomes: list[object] = []
    requester = client()
    pending = requester.request(url(server.port), GET, outcomes.append, 0.2)
    async with asyncio.timeout(5):
        while not asked.requests:  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)
    pending.abandon()
    pending.abandon()
    async with asyncio.timeout(5):
        while not server.counters["abandoned"]:  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)
    asked.replies[0](Reply(200))
    await asyncio.sleep(0.3)
    assert outcomes == []
    assert requester._tasks == set()


async def test_a_request_may_be_abandoned_from_its_own_callback(
    server: HttpServer, client: Client
) -> None:
    outcomes: list[object] = []

    def on_reply(outcome: object) -> None:
        outcomes.append(outcome)
        pending.abandon()

    pending = client().request(url(server.port), GET, on_reply, 5)
    async with asyncio.timeout(5):
        while not outcomes:  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert len(outcomes) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Len",
    ],
)
async def test_a_broken_answer_is_unreachable_but_not_refused(
    client: Client, answer: bytes
) -> None:
    async with RawServer(answer) as target:
        outcome = await ask(client(), target, Request("POST", "/x", b"body"))
    assert isinstance(outcome, Unreachable)
    assert not outcome.refused


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + bytes(101),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n"
        + bytes(101)
        + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + bytes(101),
    ],
)
async def test_an_answer_beyond_the_cap_is_not_kept(client: Client, answer: bytes) -> None:
    async with RawServer(answer) as target:
        outcome = await ask(client(answer_bytes_max=100), target)
    assert outcome == Unreachable("an answer of more than 100 bytes")


async def test_an_answer_of_exactly_the_cap_is_kept(client: Client) -> None:
    async with RawServer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + bytes(100)) as target:
        outcome = await ask(client(answer_bytes_max=100), target)
    assert isinstance(outcome, Reply)


async def test_a_redirect_is_an_answer_and_not_followed(client: Client) -> None:
    moved = b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with RawServer(moved) as target:
        outcome = await ask(client(token="secret"), target)
    assert isinstance(outcome, Reply)
    assert outcome.status == 307


async def test_a_compressed_answer_stays_as_it_is(client: Client) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"
    async with RawServer(answer) as target:
        outcome = await ask(client(), target)
    assert isinstance(outcome, Reply)
    assert outcome.body == b"abc"


async def test_closing_abandons_what_is_under_way(
    server: HttpServer, client: Client, asked: Asked
) -> None:
    asked.answer = None
    outcomes: list[object] = []
    requester = client()
    requester.request(url(server.port), GET, outcomes.append, 60)
    await asyncio.sleep(0.02)
    await requester.close()
    await asyncio.sleep(0.02)
    assert outcomes == []


async def test_a_defect_of_the_callback_reaches_the_loop(
    server: HttpServer, client: Client
) -> None:
    defects: list[BaseException] = []
    watch_loop(asyncio.get_running_loop(), defects.append)

    def fail(_: object) -> None:
        raise KeyError("a defect")

    client().request(url(server.port), GET, fail, 5)
    async with asyncio.timeout(5):
        while not defects:  # noqa: ASYNC110 - a condition, not an event
            await asyncio.sleep(0.001)
    assert isinstance(defects[0], KeyError)


# -- TLS -----------------------------------------------------------------------------------------


async def test_with_tls_both_sides_know_each_other(
    client: Client, asked: Asked, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    server = make_server(asked, tls=server_context(authority.issue(None, "server")))
    server.start()
    context = client_context(authority.path, authority.issue("logberg://c/broker/1", "client"))
    requester = client(tls=context)
    assert isinstance(await ask(requester, url(server.port, "https")), Reply)
    assert asked.requests[0].caller.principal == "User:logberg://c/broker/1"
    await requester.close()
    await server.stop(0.05)


async def test_a_server_of_another_authority_is_never_sent_a_request(
    client: Client, asked: Asked, tmp_path: Path
) -> None:
    ours, other = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another CA")
    server = make_server(asked, tls=server_context(other.issue(None)))
    server.start()
    outcome = await ask(client(tls=client_context(ours.path)), url(server.port, "https"))
    assert isinstance(outcome, Unreachable)
    assert outcome.refused
    assert "certificate is not accepted" in outcome.reason
    assert asked.requests == []
    await server.stop(0.05)


async def test_without_a_context_a_private_authority_is_not_trusted(
    client: Client, asked: Asked, tmp_path: Path
) -> None:
    server = make_server(asked, tls=server_context(Authority(tmp_path).issue(None)))
    server.start()
    outcome = await ask(client(), url(server.port, "https"))
    assert isinstance(outcome, Unreachable)
    assert outcome.refused
    await server.stop(0.05)


async def test_a_client_certificate_that_is_not_trusted_ends_unreachable(
    client: Client, asked: Asked, tmp_path: Path
) -> None:
    ours, other = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another CA")
    server = make_server(asked, tls=server_context(ours.issue(None)))
    server.start()
    context = client_context(ours.path, other.issue("logberg://c/broker/1"))
    outcome = await ask(client(tls=context), url(server.port, "https"), Request("POST", "/x", b"b"))
    assert isinstance(outcome, Unreachable)
    assert asked.requests == []
    await server.stop(0.05)
