"""Refused items of requests, as far as the log holds them.

Rule: a request that is refused as a whole writes nothing, so the log doesn't have it; the
controllers' own logs have `request_refused`. Of a request whose other items were written, the log
holds the answer, and in it the error of each refused item.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

REFUSAL_SIGN: Final = b"whoseFault"
"""A field of every error (`metadata.messages.errors.ErrorReply`), and of nothing else."""


def refused_codes(answer: bytes) -> Counter[str]:
    """Return how many items of an answer were refused, by error code.

    `answer` is that of a `RequestOutcomeRecord`. One that can't be read has no refused items.
    """
    if REFUSAL_SIGN not in answer:
        return Counter()
    try:
        _, body, *_ = msgspec.msgpack.decode(answer)
        return Counter(_codes(msgspec.msgpack.decode(body)))
    except (msgspec.DecodeError, TypeError, ValueError):
        return Counter()


def _codes(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "whoseFault" in value and "code" in value:
            yield str(value["code"])
            return
        value = value.values()
    elif not isinstance(value, list):
        return
    for each in value:
        yield from _codes(each)
