"""Controllers that answer as a test says, on virtual time: `runtime.http.requests.Requester`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from coordination.backends.quorum.asking import ControllerRequests
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import error_reply
from metadata.messages.wire import MSGPACK, encode
from runtime.http.requests import OnReply, Reply, Request, Unreachable
from runtime.randomness import seeded
from tests.unit.coordination.virtual_loop import VirtualClock

A, B, C = "http://a:1", "http://b:1", "http://c:1"
LATENCY_S = 0.01
REFUSED = Unreachable("no connection", refused=True)
LOST = Unreachable("the connection broke")
Answer = Reply | Unreachable | None
"""None: no answer ever comes."""


def ok(message: msgspec.Struct) -> Reply:
    return Reply(200, encode(message, MSGPACK), {"content-type": MSGPACK})


def refusal(
    code: ErrorCode,
    *,
    leader: str | None = None,
    after_ms: int | None = None,
    time_ms: int | None = None,
    **details: str,
) -> Reply:
    """As a controller refuses."""
    error = LogbergError(code, f"because of {code.value}", details)
    body = error_reply(error, leader_url=leader, retry_after_ms=after_ms, server_time_ms=time_ms)
    return Reply(code.status, encode(body, MSGPACK), {"content-type": MSGPACK})


def page(status: int, text: bytes = b"<html>") -> Reply:
    """As something between us and the controllers answers."""
    return Reply(status, text, {"content-type": "text/html"})


class PendingAnswer:
    """`runtime.http.requests.PendingRequest`."""

    def __init__(self) -> None:
        self.timer: asyncio.TimerHandle | None = None

    def abandon(self) -> None:
        assert self.timer is not None
        self.timer.cancel()


@dataclass
class AskedOnce:
    """One request that arrived."""

    at_s: float
    url: str
    request: Request
    deadline_s: float

    @property
    def id(self) -> str | None:
        return self.request.headers.get("x-logberg-request-id")


class ScriptedControllers:
    """`answers`: of each URL its answers in order, of which the last one repeats."""

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        self.answers = answers
        self.asked: list[AskedOnce] = []
        self.on_request: Callable[[AskedOnce], None] = lambda _: None
        self._loop = asyncio.get_running_loop()

    def request(
        self, target: str, request: Request, on_reply: OnReply, deadline_s: float
    ) -> PendingAnswer:
        asked = AskedOnce(self._loop.time(), target, request, deadline_s)
        self.asked.append(asked)
        self.on_request(asked)
        left = self.answers[target]
        answer = left.pop(0) if len(left) > 1 else left[0]
        pending = PendingAnswer()
        if answer is None or deadline_s <= LATENCY_S:
            late = Unreachable(f"no answer within {deadline_s:g} s")
            pending.timer = self._loop.call_later(deadline_s, on_reply, late)
        else:
            pending.timer = self._loop.call_later(LATENCY_S, on_reply, answer)
        return pending

    @property
    def urls(self) -> list[str]:
        return [asked.url for asked in self.asked]


def requests_to(
    controllers: ScriptedControllers, *urls: str, timeout_s: float = 3.0, only_named: bool = False
) -> ControllerRequests:
    """Ask them as a client that knows these URLs; none: all that have answers."""
    return ControllerRequests(
        urls or tuple(controllers.answers),
        controllers,
        VirtualClock(),
        seeded("a client"),
        timeout_s,
        only_named=only_named,
    )
