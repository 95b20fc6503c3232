"""Answers `POST /v1/changes`: many changes in one request, each made as if it had come alone.

Rule: each change becomes a `Request` of its own and takes the way of every other one. This module
only cuts the request, submits the changes in their order, and puts the outcomes together. The reply
leaves when every change has its outcome. After `waitMs` (at most the time for which a change waits
for its commit) a change without an outcome gets REQUEST_TIMED_OUT: it may be made, and the same
request id finds out.

Who asks, and for whom, stands in the headers of the whole request only. A broker that forwards it
sets them (KIP-590), and nothing inside the body can replace them.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from controller.http.call import Call, OnReply
from controller.http.route import Route
from controller.http.routes import RouteMatch, find_route
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.joined_changes import (
    ChangeOutcome,
    JoinedChange,
    JoinedChangesReply,
    JoinedChangesRequest,
)
from metadata.messages.parts import array_head
from metadata.messages.wire import JSON, encode
from runtime.clock import Clock
from runtime.http.requests import Reply, Request
from runtime.http.targets import TargetError, path_and_query
from runtime.loop.slices import SlicedWork

CarryOut = Callable[[RouteMatch, Request, OnReply], None]
"""Answers one request exactly once, now or later."""
_REQUEST_ID: Final = "x-logberg-request-id"
_NOT_PASSED_ON: Final = frozenset((_REQUEST_ID, "content-length", "content-digest"))


def may_be_joined(route: Route) -> bool:
    """Whether a change of this route may stand beside others in one request.

    A long request may not: it is decoded in steps of its own.
    """
    return route.changes and not route.long_list


class JoinedChanges:
    """Makes the changes of such requests."""

    def __init__(self, clock: Clock, wait_s: float, carry_out: CarryOut) -> None:
        """`wait_s`: the longest time for which one reply waits."""
        self._clock = clock
        self._wait_s = wait_s
        self._carry_out = carry_out

    def handle(self, call: Call, message: JoinedChangesRequest) -> None:
        """Make the changes, and answer when each has its outcome."""
        asked_s = self._wait_s if message.wait_ms is None else message.wait_ms / 1000
        gathered = _Gathered(call, message.changes)
        timer = self._clock.call_later(
            min(asked_s, self._wait_s), lambda: gathered.refuse_rest(_too_late(), _no_turn())
        )
        gathered.when_done = timer.cancel
        work = SlicedWork(self._clock, self._submit(call, message, gathered), lambda: None)
        # Changes that are submitted in one pass of the loop are decided and written together.
        work.begin(at_once=True)

    def _submit(
        self, call: Call, message: JoinedChangesRequest, gathered: "_Gathered"
    ) -> Generator[None, None, None]:
        common = {k: v for k, v in call.request.headers.items() if k not in _NOT_PASSED_ON}
        try:
            for number, change in enumerate(message.changes):
                if gathered.is_answered(number):
                    return  # The time is over.
                gathered.begun = number + 1
                try:
                    found, request = _alone(call, change, common)
                except LogbergError as error:
                    gathered.refuse(number, error)
                else:
                    self._carry_out(found, request, partial(gathered.take, number))
                yield
        except Exception:
            gathered.refuse_rest(_defect(), _defect())
            raise


def _too_late() -> LogbergError:
    return LogbergError(ErrorCode.REQUEST_TIMED_OUT)


def _no_turn() -> LogbergError:
    """The error of a change that was certainly not made."""
    return LogbergError(
        ErrorCode.THROTTLED, "the time was over before the change had its turn; retry later"
    )


def _defect() -> LogbergError:
    return LogbergError(ErrorCode.UNKNOWN_SERVER_ERROR, "a defect of the server: its log says more")


def _alone(
    call: Call, change: JoinedChange, common: Mapping[str, str]
) -> tuple[RouteMatch, Request]:
    """Return a change as the request that it would be alone. Raises LogbergError."""
    try:
        path, query = path_and_query(change.path)
    except TargetError as error:
        raise LogbergError(ErrorCode.INVALID_REQUEST, f"path: {error}") from None
    found = find_route(change.method, path)
    if found.route is not None and not may_be_joined(found.route):
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"{change.method[:20]} {path[:200]} can't stand beside other changes: send it alone",
            {"field": "path"},
        )
    headers = dict(common)
    if change.request_id is not None:
        headers[_REQUEST_ID] = change.request_id
    if change.reason is not None:
        headers["x-logberg-reason"] = change.reason
    if change.client_id is not None:
        headers["x-logberg-client-id"] = change.client_id
    if change.expect_offset is not None:
        headers["x-logberg-expect-offset"] = str(change.expect_offset)
    caller = call.request.caller
    return found, Request(change.method, path, bytes(change.body), query, headers, caller)


class _Gathered:
    """The outcomes of one request, as they come."""

    def __init__(self, call: Call, changes: Sequence[JoinedChange]) -> None:
        self._call = call
        self._changes = changes
        self._replies: list[Reply | None] = [None] * len(changes)
        self._left = len(changes)
        self.begun = 0
        """How many changes were submitted."""
        self.when_done: Callable[[], None] = lambda: None

    def is_answered(self, number: int) -> bool:
        """Whether a change has its outcome."""
        return self._replies[number] is not None

    def take(self, number: int, reply: Reply) -> None:
        """Take the reply to one change, unless it is too late."""
        if self._replies[number] is not None:
            if reply.parts is not None:
                reply.parts.close()
            return
        self._replies[number] = reply
        self._left -= 1
        if not self._left:
            self._answer()

    def refuse(self, number: int, error: LogbergError) -> None:
        """Give a change that has no outcome yet an error as its outcome."""
        if self._replies[number] is None:
            self.take(number, self._call.refusal(error, self._changes[number].request_id))

    def refuse_rest(self, begun: LogbergError, not_begun: LogbergError) -> None:
        """Answer for the changes that have no outcome yet."""
        for number in range(len(self._changes)):
            self.refuse(number, begun if number < self.begun else not_begun)

    def _answer(self) -> None:
        self.when_done()
        call, replies = self._call, [reply for reply in self._replies if reply is not None]
        if any(reply.parts is not None for reply in replies):
            call.on_reply(Reply(200, b"", {"content-type": call.format}, _parts(replies, call)))
        else:
            outcomes = tuple(_outcome(reply) for reply in replies)
            call.reply(200, JoinedChangesReply(outcomes))


def _outcome(reply: Reply) -> ChangeOutcome:
    """Return one reply without the parts that are still to come."""
    after = reply.headers.get("retry-after")
    return ChangeOutcome(
        reply.status, None if after is None else int(after), msgspec.Raw(reply.body)
    )


def _parts(replies: list[Reply], call: Call) -> Generator[bytes, None, None]:
    """Yield the whole reply, of which some outcomes are encoded while it is sent."""
    try:
        is_json = call.format == JSON
        if is_json:
            yield b'{"outcomes":['
        else:
            yield b"\x81" + msgspec.msgpack.encode("outcomes") + array_head(len(replies))
        for number, reply in enumerate(replies):
            encoded = encode(_outcome(reply), call.format)
            if is_json:
                # The body is the last field.
                encoded = (b"," if number else b"") + encoded[:-1]
            yield encoded
            yield from reply.parts or ()
            if is_json:
                yield b"}"
        if is_json:
            yield b"]}"
    finally:
        for reply in replies:
            if reply.parts is not None:
                reply.parts.close()
