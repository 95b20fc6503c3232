"""One Kafka request, decoded, and how a handler answers it.

Rule: a handler answers exactly once, now or later, also when something fails. A change that was
made never goes without its answer. Before it has answered or asked, a handler may raise
KafkaFailure; the dispatcher then answers with `failures.failure`.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from kafka_listener.asking.kafka_code import KafkaCode
from runtime.http.requests import ANONYMOUS, Caller

Fields = dict[str, Any]
"""One message, decoded: keys are the field names of Kafka's schema; see `wire.messages`."""


class KafkaRequest(NamedTuple):
    """One request, whose sender the connection has authenticated."""

    api_key: int
    version: int
    client_id: str | None
    fields: Fields
    caller: Caller = ANONYMOUS
    """Who sent it: with Envelope the broker, not the user."""
    on_behalf_of: str = ""
    """The principal that a broker forwarded in an Envelope; empty: none."""
    client_address: str = ""
    """The address of the client whose request a broker forwarded; empty: none."""
    listener: str = ""
    """The name of the listener that it came to, such as CONTROLLER."""
    elements: int = 0
    """How many elements its arrays have together."""


Response = Fields | bytes | tuple[bytes, ...]
"""A response's fields, or its body that is encoded for the request's version: whole, or in parts.
Arrays in the fields may be iterables that are read while the response is encoded."""
Answer = Callable[[Response], None]
Steps = Generator[None, None, None]
"""Work that yields often, so that other work of the loop comes between."""
Handler = Callable[[KafkaRequest, Answer], None]


class KafkaFailure(Exception):  # noqa: N818 - a handler's answer, not a defect
    """The request as a whole fails with this code of Kafka's."""

    def __init__(self, code: KafkaCode, message: str = "") -> None:
        self.code = code
        self.message = message or code.name
        super().__init__(f"{code.name}: {self.message}")
