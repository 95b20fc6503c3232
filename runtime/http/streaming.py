"""Sends long answers while they are being built, a slice at a time.

Rule: all long answers share one slice of each pass of the loop, in turns. No answer is built ahead
of its reader: the connection buffers at most about 64 KiB, and while the buffer is full, nothing
more is built. A client that doesn't read the whole answer in time loses its connection, so that the
data behind the answer can be freed.

An answer that turns out to be short is sent in one piece, with its length and its checksum. The
answers that are gathered for this share one budget. When it is used up, even a short answer is sent
while it is being built.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator

from aiohttp import web

from runtime.http.requests import Reply
from runtime.sockets.byte_budget import ByteClaim

SLICE_S = 0.005
GATHERED_MAX = 32 * 1024 * 1024
"""For all answers that are gathered and not sent yet."""
WHOLE_BYTES = 1_280 * 1024
"""Up to here an answer is gathered and sent in one piece: a batch of 1 MiB, and what is around."""
PIECE_BYTES = 64 * 1024


class Turns:
    """Who makes something takes turns: one slice of one answer in a pass of the loop."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn; `leave` ends it."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """End a turn; the next one begins in a later pass, whoever has it."""
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


async def gather(reply: Reply, turns: Turns, claim: ByteClaim) -> Reply:
    """Make the answer up to `WHOLE_BYTES`; what is left, if anything, stays in its parts.

    More than about `PIECE_BYTES` is gathered only if `claim` may hold a whole answer.
    """
    assert reply.parts is not None
    try:
        first, more = await _slice(reply.parts, turns, PIECE_BYTES)
        pieces, size = [reply.body, first], len(reply.body) + len(first)
        while more and size < WHOLE_BYTES:
            if not claim.held and not claim.grow(WHOLE_BYTES):
                break
            piece, more = await _slice(reply.parts, turns, WHOLE_BYTES - size)
            pieces.append(piece)
            size += len(piece)
    except BaseException:
        reply.parts.close()
        raise
    return Reply(reply.status, b"".join(pieces), reply.headers, reply.parts if more else None)


async def send(
    http: web.BaseRequest, response: web.StreamResponse, reply: Reply, turns: Turns, within_s: float
) -> None:
    """Send what is made and make the rest.

    Raises TimeoutError when the reader was too slow, ConnectionError when it left, and what the
    parts raise: then the answer is broken off, and its connection must end.
    """
    assert reply.parts is not None
    try:
        async with asyncio.timeout(within_s):
            await response.prepare(http)
            view = memoryview(reply.body)
            for start in range(0, len(view), PIECE_BYTES):
                # Handing bytes to the kernel takes time, too.
                await turns.take()
                turns.leave()
                await response.write(view[start : start + PIECE_BYTES])
            more = True
            while more:
                piece, more = await _slice(reply.parts, turns, PIECE_BYTES)
                if piece:
                    await response.write(piece)
            await response.write_eof()
    finally:
        reply.parts.close()


async def _slice(
    parts: Generator[bytes, None, None],
    turns: Turns,
    size_max: int,
    now: Callable[[], float] = time.monotonic,
) -> tuple[bytes, bool]:
    """Make some of it in one turn; whether there is more."""
    await turns.take()
    try:
        until, pieces, size = now() + SLICE_S, [], 0
        for piece in parts:
            pieces.append(piece)
            size += len(piece)
            if size >= size_max or now() >= until:
                return b"".join(pieces), True
        return b"".join(pieces), False
    finally:
        turns.leave()
