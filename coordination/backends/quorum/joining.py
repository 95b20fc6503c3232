"""Joins the changes that one client makes at the same time into one request (`POST /v1/changes`).

Rule: each change keeps its request id and has its own answer, as if it had gone alone. So whoever
asked decides by itself what to do next. A change that is made while nothing else is goes at once
and alone. Changes of one pass of the loop go together, and so do those that come while
`IN_FLIGHT_MAX` requests are under way, because a request costs more than a small change (ADR 0049).

Only short changes are joined: a reply waits for the slowest of its changes.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from metadata.messages.joined_changes import (
    CHANGES_PATH,
    JoinedChange,
    JoinedChangesReply,
    JoinedChangesRequest,
)
from metadata.messages.wire import MSGPACK, encode
from runtime.http.requests import Reply, Unreachable

SHORT_BYTES: Final = 4 * 1024
"""A change whose body is longer goes alone."""
IN_FLIGHT_MAX: Final = 2
"""A controller decides the changes of one request while those of another become durable."""
FEW: Final = 16
"""So few go in one request. More are divided among the requests that may go."""
MOST: Final = 128
SPARE_S: Final = 0.1
"""So much earlier than our own time ends, the controller answers with the outcomes that it has."""
POST: Final = "POST"


@dataclass(frozen=True, slots=True)
class ShortChange:
    """A change as a request of its own would make it."""

    path: str
    body: bytes
    """In MessagePack."""
    request_id: str


@dataclass(eq=False, slots=True)
class _Waiting:
    change: ShortChange
    until_s: float
    answered: asyncio.Future[Reply | Unreachable]
    sent: bool = False


Send = Callable[[str, str, bytes, str | None, float], Awaitable[Reply | Unreachable]]
"""Posts a body in MessagePack to a controller's path, with a request id, within so many seconds."""


class JoinedRequests:
    """The changes of one client that wait, by the controller that they go to."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._under_way: dict[str, set[asyncio.Task[None]]] = {}

    async def make(self, url: str, change: ShortChange, limit_s: float) -> Reply | Unreachable:
        """Send a change with those that wait, too; cancelling abandons it."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(change, loop.time() + limit_s, loop.create_future())
        self._waiting.setdefault(url, deque()).append(waiting)
        loop.call_soon(self._go, url)
        try:
            async with asyncio.timeout_at(waiting.until_s):
                return await waiting.answered
        except TimeoutError:
            return Unreachable(f"no answer within {limit_s:g} s", refused=not waiting.sent)

    def _go(self, url: str) -> None:
        """Send what waits, as far as requests may go."""
        waiting = self._waiting.get(url)
        under_way = self._under_way.setdefault(url, set())
        while waiting and len(under_way) < IN_FLIGHT_MAX:
            free = IN_FLIGHT_MAX - len(under_way)
            size = min(MOST, max(FEW, -(-len(waiting) // free)))
            together = [waiting.popleft() for _ in range(min(size, len(waiting)))]
            # Who gave up meanwhile sends nothing.
            together = [each for each in together if not each.answered.done()]
            if together:
                task = asyncio.create_task(self._carry(url, together), name="joined changes")
                under_way.add(task)
                for each in together:
                    each.answered.add_done_callback(partial(_abandon, task, together))
                task.add_done_callback(under_way.discard)
                task.add_done_callback(lambda _: self._go(url))
        if not waiting and not under_way:
            self._waiting.pop(url, None)
            self._under_way.pop(url, None)

    async def _carry(self, url: str, together: list[_Waiting]) -> None:
        answers: list[Reply | Unreachable]
        for each in together:
            each.sent = True
        left_s = max(each.until_s for each in together) - asyncio.get_running_loop().time()
        if len(together) == 1:
            change = together[0].change
            alone = self._send(url, change.path, change.body, change.request_id, left_s)
            answers = [await alone]
        else:
            body = _joined([each.change for each in together], left_s)
            answer = await self._send(url, CHANGES_PATH, body, None, left_s)
            answers = _outcomes(answer, len(together))
        for each, one in zip(together, answers, strict=True):
            if not each.answered.done():
                each.answered.set_result(one)


def _abandon(task: asyncio.Task[None], together: list[_Waiting], _: object) -> None:
    """End a request for whose answer nobody waits any more."""
    if all(each.answered.done() for each in together):
        task.cancel()


def _joined(changes: list[ShortChange], left_s: float) -> bytes:
    message = JoinedChangesRequest(
        tuple(
            JoinedChange(POST, each.path, msgspec.Raw(each.body), each.request_id)
            for each in changes
        ),
        int(max(left_s - SPARE_S, left_s / 2) * 1000),
    )
    return encode(message, MSGPACK)


def _outcomes(answer: Reply | Unreachable, count: int) -> list[Reply | Unreachable]:
    """Return an answer for each of the changes that went together."""
    if isinstance(answer, Unreachable) or answer.status >= 300:
        return [answer] * count
    try:
        found = msgspec.msgpack.decode(answer.body, type=JoinedChangesReply).outcomes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = ()
    if len(found) != count:
        return [Unreachable("the answer doesn't say what came of each change")] * count
    headers = {"content-type": MSGPACK}
    return [Reply(each.status, bytes(each.body), headers) for each in found]
