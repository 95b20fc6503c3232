"""Sends long replies while they are being built, a slice at a time.

Rule: in each pass of the loop one slice of one long reply is built; the replies take turns. No
reply is built ahead of its reader: the connection buffers at most about 64 KiB, and while the
buffer is full, nothing more is built. A client that doesn't read the whole reply in time loses its
connection, so that the data behind the reply can be freed.

A reply that turns out to be short is gathered and sent in one piece, with its length and checksum.
All replies that are being gathered share one memory budget. When it is used up, even a short reply
is sent while it is being built.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator

from runtime.http.requests import Reply
from runtime.sockets.byte_budget import ByteClaim

SLICE_S = 0.005
GATHERED_MAX = 32 * 1024 * 1024
"""The budget of all replies that are being gathered or are not sent yet."""
WHOLE_BYTES = 1_280 * 1024
"""A reply up to this size is sent in one piece: enough for a batch of 1 MiB with its envelope."""
PIECE_BYTES = 64 * 1024


class Turns:
    """Lets replies take turns: one slice of one reply in each pass of the loop."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn. The caller ends it with `leave`."""
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
        """End a turn. The next one begins in a later pass, even if it is the caller's again."""
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


async def gather(reply: Reply, turns: Turns, claim: ByteClaim) -> Reply:
    """Build up to `WHOLE_BYTES` of a reply; the rest, if any, stays in its parts.

    More than about `PIECE_BYTES` is gathered only if `claim` may hold `WHOLE_BYTES`.
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
    write: Callable[[bytes], Awaitable[None]], reply: Reply, turns: Turns, within_s: float
) -> None:
    """Send the gathered bytes of a reply, then build and send the rest.

    `write` returns when the client has read enough. Raises TimeoutError if the client is too slow,
    and whatever the parts raise. Then the reply is incomplete, and the caller must end the
    connection.
    """
    assert reply.parts is not None
    try:
        async with asyncio.timeout(within_s):
            view = memoryview(reply.body)
            for start in range(0, len(view), PIECE_BYTES):
                # Copying bytes to the kernel takes time too, so it also takes a turn.
                await turns.take()
                turns.leave()
                await write(bytes(view[start : start + PIECE_BYTES]))
            more = True
            while more:
                piece, more = await _slice(reply.parts, turns, PIECE_BYTES)
                if piece:
                    await write(piece)
    finally:
        reply.parts.close()


async def _slice(
    parts: Generator[bytes, None, None],
    turns: Turns,
    size_max: int,
    now: Callable[[], float] = time.monotonic,
) -> tuple[bytes, bool]:
    """Build some bytes in one turn. Returns them, and whether there are more."""
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
