"""Decodes the requests of a connection in steps, within the listener's memory for them.

Rule: what a request takes is held before it is made: the frame at once, its elements as they are
counted. It is held until the handler has answered. Where the connection ends meanwhile, decoding
goes on, and its owner lets the request go.
"""

from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from kafka_listener.asking.request import Fields, KafkaRequest, Steps
from kafka_listener.serving.request_limits import elements_max
from kafka_listener.wire.errors import WireError
from kafka_listener.wire.messages import RequestHeader, decode_request_in_steps
from runtime.clock import Clock
from runtime.http.requests import Caller
from runtime.loop.slices import SlicedWork
from runtime.sockets.byte_budget import ByteBudget, ByteClaim

_ENVELOPE: Final = 58
_ELEMENT_BYTES: Final = 256
"""What an element of an array takes in memory, about."""
_ENVELOPE_BYTES: Final = 64
"""What a byte of an envelope may take once the request inside is decoded, about."""


class Decoded(NamedTuple):
    """A request whose fields are known."""

    header: RequestHeader
    fields: Fields
    elements: int
    claim: ByteClaim
    """Its memory; the caller gives it back."""

    def request(self, caller: Caller, listener: str) -> KafkaRequest:
        """Return the request for its handler."""
        key, version, _, client_id = self.header
        return KafkaRequest(
            key,
            version,
            client_id,
            self.fields,
            caller,
            listener=listener,
            elements=self.elements,
        )


class RequestDecoding:
    """The way from frames to fields, for one connection."""

    def __init__(self, clock: Clock, budget: ByteBudget, address: str) -> None:
        self._clock = clock
        self._budget = budget
        self._address = address

    def begin(
        self,
        header: RequestHeader,
        frame: bytes,
        start: int,
        on_done: Callable[[Decoded | WireError], None],
    ) -> None:
        """Decode a frame whose body begins at `start`. `on_done` is called now or later."""
        outcome: list[Decoded | WireError] = []
        work = self._decoded(header, frame, start, outcome)
        SlicedWork(self._clock, work, lambda: on_done(outcome[0])).begin(at_once=True)

    def _decoded(
        self,
        header: RequestHeader,
        frame: bytes,
        start: int,
        outcome: list[Decoded | WireError],
    ) -> Steps:
        key, version = header.api_key, header.version
        claim = self._budget.claim(self._address)
        decoding = decode_request_in_steps(key, version, frame, start, elements_max(key))
        try:
            _hold(claim, len(frame) * (1 + _ENVELOPE_BYTES * (key == _ENVELOPE)))
            fields, elements = yield from _counted(decoding, claim)
        except WireError as error:
            claim.close()
            outcome.append(error)
            return
        except Exception as error:  # noqa: BLE001 - in a later slice it would end the process
            claim.close()
            outcome.append(WireError(f"a defect here: the request can't be decoded: {error!r}"))
            return
        outcome.append(Decoded(header, fields, elements, claim))


def _counted(
    decoding: Generator[int, None, tuple[Fields, int]], claim: ByteClaim
) -> Generator[None, None, tuple[Fields, int]]:
    """Decode, and hold the memory of the elements that are counted. Raises WireError."""
    held = 0
    while True:
        try:
            counted = next(decoding)
        except StopIteration as done:
            fields, counted = done.value
            _hold(claim, (counted - held) * _ELEMENT_BYTES)
            return fields, counted
        _hold(claim, (counted - held) * _ELEMENT_BYTES)
        held = counted
        yield


def _hold(claim: ByteClaim, size: int) -> None:
    """Note what a request takes. Raises WireError if that is too much."""
    if not claim.grow(size):
        raise WireError("the requests that wait for their answers use up the memory")
