"""A body that does not fit its digest is refused, also without TLS."""

import asyncio
from collections.abc import Callable

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from runtime.http.client import HttpRequester
from runtime.http.content_digest import content_digest, is_content
from runtime.http.requests import Reply, Request, Unreachable
from tests.unit.runtime.http.http_kit import Asked, code_of, make_server, raw, status_of


def test_the_value_is_that_of_the_registry() -> None:
    """CRC-32C of "123456789" is e3069283 (RFC 3720)."""
    assert content_digest(b"123456789") == "crc32c=:4waSgw==:"


@given(st.binary(min_size=1, max_size=200), st.integers(0))
def test_every_flipped_bit_of_a_body_is_seen(body: bytes, bit: int) -> None:
    harmed = bytearray(body)
    bit %= len(body) * 8
    harmed[bit // 8] ^= 1 << bit % 8
    assert is_content(body, content_digest(body))
    assert not is_content(bytes(harmed), content_digest(body))


@pytest.mark.parametrize("said", [None, "", "sha-256=:AAAA:", "sha-256=:AA==:, unixsum=:AA==:"])
def test_what_says_nothing_that_we_read_is_no_objection(said: str | None) -> None:
    assert is_content(b"any", said)
    assert not is_content(b"any", f"{said or 'md5=::'}, crc32c=:AAAAAA==:")


async def exchange(body: bytes, *, harm_request: bool, harm_answer: bool) -> Reply | Unreachable:
    """Ask an echoing server over a cable that flips one bit of a body."""
    asked = Asked()

    def echo(request: Request, reply: Callable[[Reply], None]) -> None:
        asked.requests.append(request)
        reply(Reply(200, request.body))

    server = make_server(echo)
    server.start()
    requester = HttpRequester(log=structlog.get_logger())
    cable = await asyncio.start_server(
        lambda r, w: carry(r, w, server.port, body, harm_request, harm_answer), "127.0.0.1", 0
    )
    port = cable.sockets[0].getsockname()[1]
    done: asyncio.Future[Reply | Unreachable] = asyncio.get_running_loop().create_future()
    try:
        request = Request("POST", "/x", body)
        requester.request(f"http://127.0.0.1:{port}", request, done.set_result, 5.0)
        return await done
    finally:
        await requester.close()
        cable.close()
        await server.stop(0.05)
        await asyncio.sleep(0.01)


async def carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    port: int,
    body: bytes,
    harm_request: bool,
    harm_answer: bool,
) -> None:
    there, back = await asyncio.open_connection("127.0.0.1", port)
    flipped = bytes((body[0] ^ 4,)) + body[1:]

    async def one_way(
        source: asyncio.StreamReader, sink: asyncio.StreamWriter, harmed: bool
    ) -> None:
        while data := await source.read(65_536):
            sink.write(data.replace(body, flipped) if harmed else data)
        sink.close()

    await asyncio.gather(one_way(reader, back, harm_request), one_way(there, writer, harm_answer))


async def test_a_changed_answer_is_no_answer() -> None:
    outcome = await exchange(b"the topic orders", harm_request=False, harm_answer=True)
    assert outcome == Unreachable("the answer is not what was sent: its checksum is wrong")


async def test_a_changed_request_is_refused_before_any_rule_sees_it() -> None:
    outcome = await exchange(b"the topic orders", harm_request=True, harm_answer=False)
    assert isinstance(outcome, Reply)
    assert outcome.status == 400
    assert b"MALFORMED_BODY" in outcome.body
    assert b"send it again" in outcome.body


async def test_what_is_not_changed_goes_through() -> None:
    outcome = await exchange(b"the topic orders", harm_request=False, harm_answer=False)
    assert isinstance(outcome, Reply)
    assert outcome.body == b"the topic orders"
    assert outcome.headers["content-digest"] == content_digest(b"the topic orders")


async def test_a_client_that_says_nothing_is_served() -> None:
    server = make_server(Asked())
    server.start()
    head = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n"
    assert status_of(await raw(server.port, head + b"\r\nhi")) == 200
    wrong = await raw(server.port, head + b"content-digest: crc32c=:AAAAAA==:\r\n\r\nhi")
    assert (status_of(wrong), code_of(wrong)) == (400, "MALFORMED_BODY")
    await server.stop(0.05)
