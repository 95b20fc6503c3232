"""Sends a broker's requests of one kind to the active controller, one at a time.

Rule: the next request goes after the outcome of the one before. If the outcome is a failure, as
during a failover, the next request waits: 50 ms at first, twice as long after each failure, 1 s at
most. An answer that comes after the limit is never delivered.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from broker_agent.agent import AgentCore
from broker_agent.states import BrokerState
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.wire import MSGPACK, decode, decode_error, encode
from runtime.clock import Clock, Timer
from runtime.http.requests import Reply, Request, Requester, Unreachable

Message = TypeVar("Message", bound=msgspec.Struct)

TRY_LATER = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NO_QUORUM,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLED,
        ErrorCode.DISK_FULL,
    }
)
"""The same request may succeed later."""
_LIMIT_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_OK = 200


class PacedRequests:
    """The requests of one kind. They begin once the broker is registered."""

    def __init__(
        self,
        clock: Clock,
        requester: Requester,
        compose: Callable[[AgentCore], Request | None],
        on_answer: Callable[[Reply | Unreachable], bool],
    ) -> None:
        """`compose` returns the next request, or None if there is nothing to ask now.

        `on_answer` returns whether the next request may go at once; False: after a pause.
        """
        self._clock = clock
        self._requester = requester
        self._compose = compose
        self._on_answer = on_answer
        self._agent: AgentCore | None = None
        self._under_way = False
        self._timer: Timer | None = None
        self._failures = 0

    @property
    def agent(self) -> AgentCore | None:
        """The agent that these requests belong to; None before `follow` and after `end`."""
        return self._agent

    def follow(self, agent: AgentCore) -> None:
        """Send requests as the broker of `agent`, to the controllers that it follows."""
        self._agent = agent

    def wake(self, after_s: float = 0.0) -> None:
        """Send the next request at once, or after `after_s`, if none is under way and none waits.

        Call it whenever there may be something new to ask.
        """
        if self._under_way or self._timer is not None or self._agent is None:
            return
        if after_s > 0:
            self._timer = self._clock.call_later(after_s, self._on_timer)
            return
        agent = self._agent
        if agent.state is BrokerState.GONE or agent.broker_epoch < 0:
            return
        request = self._compose(agent)
        if request is not None:
            self._under_way = True
            self._requester.request(agent.controller_url, request, self._answered, _LIMIT_S)

    def end(self) -> None:
        """Send no more requests, and ignore the answer that is under way."""
        self._agent = None
        if self._timer is not None:
            self._timer.cancel()

    def _answered(self, answer: Reply | Unreachable) -> None:
        if self._agent is None:
            return
        # Requests that `on_answer` causes wait until it returns: then they may share one request.
        try:
            go_on = self._on_answer(answer)
        finally:
            self._under_way = False
        if go_on:
            self._failures = 0
            self.wake()
        else:
            pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**self._failures)
            self._failures = min(self._failures + 1, 10)
            self.wake(pause_s)

    def _on_timer(self) -> None:
        self._timer = None
        self.wake()


def post(path: str, message: msgspec.Struct) -> Request:
    """Return the request that sends a message and takes its answer as MessagePack."""
    headers = {"content-type": MSGPACK, "accept": MSGPACK}
    return Request("POST", path, encode(message, MSGPACK), headers=headers)


def reply_of(kind: type[Message], answer: Reply | Unreachable) -> Message | None:
    """Return the reply; None if there is none, or if it can't be read."""
    if isinstance(answer, Unreachable) or answer.status != _OK:
        return None
    try:
        return decode(kind, answer.body, answer.headers.get("content-type", ""), tolerant=True)
    except LogbergError:
        return None


def problem_of(answer: Reply | Unreachable) -> tuple[str, str]:
    """Return the code and the sentence of an answer without a usable reply."""
    if isinstance(answer, Unreachable):
        return "NO_ANSWER", answer.reason
    if answer.status == _OK:
        return "NO_ANSWER", "the answer can't be read"
    error = decode_error(answer.status, answer.body, answer.headers.get("content-type", ""))
    return error.code, error.message
