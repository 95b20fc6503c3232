"""Asks again while no controller can answer: the way of an agent's Kafka listener.

A Kafka broker holds a request that it forwards until the active controller has answered it. So
Kafka's clients don't expect NOT_CONTROLLER from a broker, and librdkafka shows it to its user. An
agent holds requests in the same way.

Rule: a change has the same request id in all its tries. So it takes effect once, also if an answer
was lost. The last reply goes to the client as it is once the time is over.
"""

from typing import Final

import msgspec

from kafka_listener.asking.asking import AskRoute
from metadata.errors import ErrorCode
from metadata.messages.wire import MSGPACK, decode_error
from metadata.uuids import UUID7_RANDOM_BITS, uuid7, uuid_text
from runtime.clock import Clock
from runtime.http.requests import OnReply, Reply, Request, Unreachable
from runtime.randomness import Random

REQUEST_ID: Final = "x-logberg-request-id"
HELD_S: Final = 20.0
"""How long a request is tried anew. Clients wait 30 s or longer for an answer."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_MAY_CHANGE: Final = frozenset(
    {
        ErrorCode.NO_QUORUM,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.STATE_DIVERGED,
    }
)
"""Another controller may answer, or the same one a moment later."""
_STATUSES: Final = frozenset(code.status for code in _MAY_CHANGE)


class RepeatedAsk:
    """Sends requests by `ask` until a controller has answered them."""

    def __init__(self, ask: AskRoute, clock: Clock, random: Random, held_s: float = HELD_S) -> None:
        self._ask = ask
        self._clock = clock
        self._random = random
        self._held_s = held_s

    def __call__(self, request: Request, on_reply: OnReply) -> None:
        """Send a request; `on_reply` gets its reply once."""
        request = self._with_id(request)
        until = self._clock.monotonic() + self._held_s
        pause = _FIRST_PAUSE_S

        def send() -> None:
            self._ask(request, answered)

        def answered(reply: Reply | Unreachable) -> None:
            nonlocal pause
            if not _may_change(reply) or self._clock.monotonic() + pause > until:
                on_reply(reply)
                return
            self._clock.call_later(pause, send)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

        send()

    def _with_id(self, request: Request) -> Request:
        if request.method == "GET":
            return request
        bits = self._random.getrandbits(UUID7_RANDOM_BITS)
        request_id = uuid_text(uuid7(self._clock.wall_ms(), bits))
        headers = {**request.headers, REQUEST_ID: request_id}
        return msgspec.structs.replace(request, headers=headers)


def _may_change(reply: Reply | Unreachable) -> bool:
    """Tell whether the same request may be answered otherwise in a moment."""
    if isinstance(reply, Unreachable):
        return True
    if reply.status not in _STATUSES:
        return False
    content_type = reply.headers.get("content-type", MSGPACK)
    return decode_error(reply.status, reply.body, content_type).known_code() in _MAY_CHANGE
