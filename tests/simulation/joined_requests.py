"""Administrators whose changes go many in one request: `POST /v1/changes`.

Rule: this stands between an administrator and its requests, so the checks of each administrator's
answers judge changes that came together as they judge those that came alone. A request that carries
several is lost, doubled and retried as a whole; each change in it is retried by its own id.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from controller.http.joined_changes import may_be_joined
from controller.http.routes import find_route
from metadata.messages.joined_changes import CHANGES_PATH
from runtime.http.requests import Reply, Request, Requester, Unreachable
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import US

_PAUSE_S = 0.4
"""The longest time for which a change waits for others. There are only a few a second."""
_OWN_HEADERS: Mapping[str, str] = {
    "x-logberg-request-id": "requestId",
    "x-logberg-reason": "reason",
    "x-logberg-client-id": "clientId",
    "x-logberg-expect-offset": "expectOffset",
}
_KNOWN = {*_OWN_HEADERS, "content-type", "accept"}
OnReply = Callable[[Reply | Unreachable], None]


class _Change(NamedTuple):
    request: Request
    on_reply: OnReply
    until_s: float


class _Waiting:
    """A request that was handed in, and may be abandoned."""

    def __init__(self, on_reply: OnReply) -> None:
        self._on_reply: OnReply | None = on_reply

    def abandon(self) -> None:
        self._on_reply = None

    def settle(self, answer: Reply | Unreachable) -> None:
        on_reply, self._on_reply = self._on_reply, None
        if on_reply is not None:
            on_reply(answer)


class JoinedRequests:
    """`runtime.http.requests.Requester` that joins changes to the same controller."""

    def __init__(
        self, requests: Requester, process: SimulatedProcess, dice: Any, facts: Counter[str]
    ) -> None:
        self._requests = requests
        self._process = process
        self._dice = dice
        self._facts = facts
        self._waiting: dict[str, list[_Change]] = {}

    def request(self, target: str, request: Request, on_reply: OnReply, deadline_s: float) -> Any:
        if not _fits(request):
            return self._requests.request(target, request, on_reply, deadline_s)
        waiting = _Waiting(on_reply)
        until_s = self._process.clock.monotonic() + deadline_s
        others = self._waiting.setdefault(target, [])
        if not others:
            pause = int(self._dice.uniform(0, _PAUSE_S) * US)
            self._process.schedule(pause, partial(self._send, target), "joined")
        others.append(_Change(request, waiting.settle, until_s))
        return waiting

    def _send(self, target: str) -> None:
        changes = self._waiting.pop(target)
        deadline_s = min(change.until_s for change in changes) - self._process.clock.monotonic()
        self._facts[f"joined: {'several' if len(changes) > 1 else 'one'}"] += 1
        headers = {"content-type": "application/json"}
        body = json.dumps({"changes": [_encoded(change.request) for change in changes]}).encode()
        self._requests.request(
            target,
            Request("POST", CHANGES_PATH, body, headers=headers),
            partial(self._answered, changes),
            max(deadline_s, 0.001),
        )

    def _answered(self, changes: list[_Change], answer: Reply | Unreachable) -> None:
        if isinstance(answer, Unreachable) or answer.status != 200:
            for change in changes:
                change.on_reply(answer)
            return
        outcomes = json.loads(answer.body)["outcomes"]
        for change, outcome in zip(changes, outcomes, strict=True):
            headers = {"content-type": "application/json"}
            if outcome["retryAfterS"] is not None:
                headers["retry-after"] = str(outcome["retryAfterS"])
            body = json.dumps(outcome["body"]).encode()
            change.on_reply(Reply(outcome["status"], body, headers))


def _fits(request: Request) -> bool:
    route = find_route(request.method, request.path).route
    is_json = request.headers.get("content-type", "application/json") == "application/json"
    known = _KNOWN.issuperset(request.headers)
    return route is not None and may_be_joined(route) and is_json and known


def _encoded(request: Request) -> dict[str, Any]:
    query = f"?{urlencode(request.query)}" if request.query else ""
    change: dict[str, Any] = {"method": request.method, "path": request.path + query}
    if request.body:
        change["body"] = json.loads(request.body)
    for header, name in _OWN_HEADERS.items():
        if header in request.headers:
            value = request.headers[header]
            change[name] = int(value) if name == "expectOffset" else value
    return change
