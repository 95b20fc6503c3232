"""Answers that are made while they are sent: complete, in turns, and not ahead of their reader."""

import asyncio
from collections.abc import Callable, Generator

import aiohttp
import pytest

from runtime.http.content_digest import CONTENT_DIGEST, content_digest
from runtime.http.requests import Reply, whole
from runtime.http.server import HttpServer
from runtime.http.streaming import WHOLE_BYTES, Turns, gather
from runtime.sockets.byte_budget import ByteBudget
from tests.unit.runtime.http.http_kit import Asked, short

PART = bytes(range(256)) * 64
MANY = 40 * WHOLE_BYTES // len(PART)
Serve = Callable[..., HttpServer]


class Parts:
    """So many parts, and how many were asked for."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.count, self.fails_at = count, fails_at
        self.made = 0
        self.closed = False

    def reply(self) -> Reply:
        return Reply(200, b"head:", {"content-type": "text/plain"}, self._parts())

    def _parts(self) -> Generator[bytes, None, None]:
        try:
            for number in range(self.count):
                if number == self.fails_at:
                    raise OSError("the disk is gone")
                self.made += 1
                yield PART
        finally:
            self.closed = True


@pytest.mark.parametrize("count", [0, 3, MANY])
async def test_the_answer_arrives_whole(serve: Serve, asked: Asked, count: int) -> None:
    server, parts = serve(), Parts(count)
    asked.answer = parts.reply()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}/x") as response,
    ):
        body = await response.read()
        said = response.headers.get(CONTENT_DIGEST)
    assert body == b"head:" + PART * count
    assert parts.closed or not count
    assert said == (None if count == MANY else content_digest(body))


async def test_nothing_is_made_ahead_of_a_reader_who_does_not_read(
    serve: Serve, asked: Asked
) -> None:
    server, parts = serve(), Parts(100 * MANY)
    asked.answer = parts.reply()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    made = -1
    while made != parts.made:
        made = parts.made
        await asyncio.sleep(0.2)
    # What is made lies in the buffers of the two sockets, some megabytes each.
    assert made * len(PART) < 24 * WHOLE_BYTES
    assert not parts.closed
    writer.transport.abort()
    while not parts.closed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert parts.made <= made + WHOLE_BYTES // len(PART)


async def test_answers_are_gathered_within_a_budget_and_beyond_it_sent_while_they_are_made(
    serve: Serve, asked: Asked
) -> None:
    server = serve()
    room = server.gathered.bytes_max // WHOLE_BYTES
    few = WHOLE_BYTES // len(PART) // 2
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{server.port}/x"
        others = [server.gathered.claim("") for _ in range(room)]
        for number, free in ((room, False), (room - 1, True)):
            for other in others[:number]:
                assert other.held or other.grow(WHOLE_BYTES)
            for other in others[number:]:
                other.close()
            asked.answer = Parts(few).reply()
            async with session.get(url) as response:
                assert await response.read() == b"head:" + PART * few
                assert (CONTENT_DIGEST in response.headers) == free
            assert server.gathered.used == number * WHOLE_BYTES


async def test_who_takes_too_long_loses_the_connection(serve: Serve, asked: Asked) -> None:
    server, parts = serve(limits=short(reply_s=0.2)), Parts(100 * MANY)
    asked.answer = parts.reply()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    while not parts.closed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert server.counters["broken_off"] == 1
    writer.close()


async def test_a_failure_behind_the_head_breaks_the_answer_off(serve: Serve, asked: Asked) -> None:
    server, parts = serve(), Parts(2 * MANY, fails_at=MANY)
    asked.answer = parts.reply()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.get(f"http://127.0.0.1:{server.port}/x") as response:
                await response.read()
    assert parts.closed
    assert server.counters["broken_off"] == 1


async def test_all_answers_share_one_slice_of_a_pass() -> None:
    """However many there are, one of them continues in each pass of the loop."""
    turns, all_parts = Turns(), [Parts(1_000_000) for _ in range(20)]
    budget = ByteBudget(1 << 40)
    tasks = [
        asyncio.create_task(gather(parts.reply(), turns, budget.claim(""))) for parts in all_parts
    ]
    await asyncio.sleep(0)
    for _ in range(30):
        before = [parts.made for parts in all_parts]
        await asyncio.sleep(0)
        went_on = sum(parts.made > then for parts, then in zip(all_parts, before, strict=True))
        assert went_on <= 1
    assert sum(parts.made > 0 for parts in all_parts) > 10, "the others wait in vain"
    made = {task: parts for task, parts in zip(tasks, all_parts, strict=True) if not task.done()}
    for task in made:
        task.cancel()
    await asyncio.gather(*made, return_exceptions=True)
    assert all(parts.closed or not parts.made for parts in made.values())


async def test_who_is_cancelled_while_waiting_gives_its_turn_on() -> None:
    turns = Turns()
    await turns.take()
    waiting = [asyncio.create_task(turns.take()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    turns.leave()
    async with asyncio.timeout(1):
        await waiting[1]
    waiting[2].cancel()
    turns.leave()
    await asyncio.gather(*waiting, return_exceptions=True)
    async with asyncio.timeout(1):
        await turns.take()


async def test_who_comes_behind_a_turn_in_the_same_pass_waits_for_a_later_one() -> None:
    """Also when nobody waited as it ended: else a crowd that is ready together goes on together."""
    turns, passes, now = Turns(), [0], True

    def count() -> None:
        passes.append(0)
        if now:
            asyncio.get_running_loop().call_soon(count)

    async def work() -> None:
        for _ in range(5):
            await turns.take()
            passes[-1] += 1
            turns.leave()

    asyncio.get_running_loop().call_soon(count)
    await asyncio.gather(*(work() for _ in range(10)))
    now = False
    assert sum(passes) == 50
    assert max(passes) == 1


def test_a_carrier_of_whole_answers_gets_them_whole() -> None:
    reply = whole(Parts(3).reply())
    assert (reply.body, reply.parts) == (b"head:" + PART * 3, None)
