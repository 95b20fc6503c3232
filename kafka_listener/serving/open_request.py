"""The request of a connection that is under way: decoded, and not answered as a whole yet.

Rule: its memory is held until its handler has answered and the answer is encoded, also if the
connection ends before. Until then somebody may read its fields.
"""

from kafka_listener.asking.letting_go import let_go
from kafka_listener.asking.request import KafkaRequest
from runtime.clock import Clock
from runtime.sockets.byte_budget import ByteClaim


class OpenRequest:
    """One request, with what its session has to know of it."""

    def __init__(
        self, request: KafkaRequest, correlation_id: int, clock: Clock, claim: ByteClaim
    ) -> None:
        """`claim` holds the request's memory."""
        self.request = request
        self.correlation_id = correlation_id
        self.since = clock.monotonic()
        self._clock = clock
        self._claim = claim
        self.answered = False
        """The answer is being written: the handler's, or an error of ours."""
        self.handled = False
        """The handler has answered, or failed."""
        self.failed = False
        """The answer is an error of ours."""

    def let_go_if_handled(self) -> None:
        """Free the request's memory, unless its handler still reads it. The answer is encoded."""
        if self.handled:
            self._claim.close()
            let_go(self._clock, self.request.fields, self.request.elements)
