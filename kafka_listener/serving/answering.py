"""Writes a connection's answers: each is encoded in steps, and sent part by part.

Rule: answers are written one after another, in the order of the calls of `begin`; the caller begins
the next one after `on_done`. While the client doesn't read, the rest of a long answer waits here,
and not in the socket's buffer. What is encoded takes turns with the other long work of the loop.
"""

from collections.abc import Callable, Generator
from typing import NamedTuple

from kafka_listener.asking.request import Response
from kafka_listener.serving.frames import framed_parts
from kafka_listener.wire.body_parts import Parts
from kafka_listener.wire.messages import encode_response_header, encode_response_in_steps
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork
from runtime.sessions.interface import ByteLink


class AnswerTo(NamedTuple):
    """What an answer belongs to."""

    api_key: int
    version: int
    correlation_id: int


class Answering:
    """The answers of one connection."""

    def __init__(self, clock: Clock, link: ByteLink) -> None:
        self._clock = clock
        self._link = link
        self._work: SlicedWork | None = None

    def begin(
        self,
        to: AnswerTo,
        response: Response,
        on_encoded: Callable[[], None],
        on_done: Callable[[Exception | None], None],
    ) -> None:
        """Write an answer, now or later.

        `on_encoded` is called when it is encoded, so that nothing reads the request any more.
        `on_done` is called when all of it is written. It gets why the answer can't be written; then
        nothing of it was.
        """
        outcome: list[Exception] = []
        work = SlicedWork(
            self._clock,
            self._written(to, response, on_encoded, outcome),
            lambda: on_done(outcome[0] if outcome else None),
        )
        self._work = work
        work.begin(at_once=True)

    def blocked(self, is_blocked: bool) -> None:
        """Wait until the client reads, or go on."""
        if self._work is None:
            return
        if is_blocked:
            self._work.pause()
        else:
            self._work.resume()

    def stop(self) -> None:
        """Write no more: the connection has ended."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()

    def _written(
        self,
        to: AnswerTo,
        response: Response,
        on_encoded: Callable[[], None],
        outcome: list[Exception],
    ) -> Generator[None, None, None]:
        try:
            body = yield from _encoded(to, response)
            head = encode_response_header(*to)
        except Exception as error:  # noqa: BLE001 - a defect of ours still gets its answer
            outcome.append(error)
            return
        on_encoded()
        first, *rest = framed_parts(head, body)
        self._link.write(first)
        for part in rest:
            yield
            self._link.write(part)


def _encoded(to: AnswerTo, response: Response) -> Generator[None, None, Parts]:
    """Return the parts of a response's body."""
    if isinstance(response, bytes):
        return (response,)
    if isinstance(response, tuple):
        return response
    return (yield from encode_response_in_steps(to.api_key, to.version, response))
