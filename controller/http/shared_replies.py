"""One encoded reply for all brokers that wait for the same.

Rule: of the reply to a broker in service, only the broker epoch is its own. The rest is encoded
once for each format and shared, so a change that thousands of brokers wait for is not encoded
thousands of times.
"""

from functools import cache
from typing import NamedTuple

import msgspec

from metadata.errors import ErrorCode
from metadata.messages import MetadataFetchReply
from metadata.messages.wire import encode


class SharedReply:
    """A reply to several brokers; its broker epoch is filled in for each."""

    __slots__ = ("_around", "_message")

    def __init__(self, message: MetadataFetchReply) -> None:
        self._message = message
        self._around: dict[str, tuple[bytes, bytes]] = {}
        """By format: the encoded bytes before the broker epoch, and those behind it."""

    def encoded(self, broker_epoch: int, content_type: str) -> bytes:
        """Return the reply to one broker as bytes."""
        around = self._around.get(content_type)
        if around is None:
            around = self._around[content_type] = _around_epoch(self._message, content_type)
        before, behind = around
        return before + encode(broker_epoch, content_type) + behind


class FetchAnswer(NamedTuple):
    """The answer to one request."""

    message: MetadataFetchReply | SharedReply
    broker_epoch: int = -1
    """Of a shared reply."""
    error: ErrorCode | None = None
    retry_after_ms: int | None = None
    """When to ask again, if the error says so."""

    def encoded(self, content_type: str) -> bytes:
        """Return the answer as bytes."""
        if isinstance(self.message, SharedReply):
            return self.message.encoded(self.broker_epoch, content_type)
        return encode(self.message, content_type)


def _around_epoch(message: MetadataFetchReply, content_type: str) -> tuple[bytes, bytes]:
    """Return what stands before and behind the broker epoch in an encoded reply."""
    at = _place_of_epoch(content_type)
    encoded = encode(msgspec.structs.replace(message, broker_epoch=0), content_type)
    return encoded[:at], encoded[at + 1 :]


@cache
def _place_of_epoch(content_type: str) -> int:
    """Return where the broker epoch stands in a reply without an error: nothing else is before it.

    The numbers 0 and 1 take one byte in each format.
    """
    zero, one = (encode(MetadataFetchReply(broker_epoch=n), content_type) for n in (0, 1))
    return next(at for at, (a, b) in enumerate(zip(zero, one, strict=True)) if a != b)
