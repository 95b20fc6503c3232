"""Messages too long to be written at once: in parts, the same bytes.

Rule: a message whose one list is long is encoded with that list empty, and the list's entries are
put into its place, some at a time. So a part takes milliseconds and nobody holds the whole; the
fields stand in the same order as in a message that is encoded at once.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from metadata.messages.wire import JSON, MSGPACK

GROUP: Final = 32
"""Entries that are encoded together."""


class LongMessage(NamedTuple):
    """A message and the entries of its one long list."""

    head: Any
    """The message, with the list empty."""
    name: str
    """Of the list, as it is written."""
    entries: Iterator[Any]
    """Messages, or values that can be encoded; each a `LongMessage` where it is long itself."""
    length: int
    """How many."""


def encode_in_parts(message: LongMessage, content_type: str) -> Generator[bytes, None, None]:
    """Yield the encoded message, in parts. `content_type` is JSON or MSGPACK."""
    if content_type == MSGPACK:
        return _msgpack_parts(message)
    assert content_type == JSON, content_type
    return _json_parts(message)


def _json_parts(message: LongMessage) -> Generator[bytes, None, None]:
    before, after = _split(msgspec.json.encode(message.head), f'"{message.name}":['.encode(), b"]")
    yield before
    first = True
    for group in _groups(message.entries):
        if not first:
            yield b","
        first = False
        if isinstance(group, LongMessage):
            yield from _json_parts(group)
        else:
            yield msgspec.json.encode(group)[1:-1]
    yield after


def _msgpack_parts(message: LongMessage) -> Generator[bytes, None, None]:
    name = msgspec.msgpack.encode(message.name)
    before, after = _split(msgspec.msgpack.encode(message.head), name + b"\x90", b"")
    yield before[:-1] + array_head(message.length)
    for group in _groups(message.entries):
        if isinstance(group, LongMessage):
            yield from _msgpack_parts(group)
        else:
            yield b"".join(map(msgspec.msgpack.encode, group))
    yield after


def array_head(count: int) -> bytes:
    """Return MessagePack's head of an array of so many."""
    if count < 16:
        return bytes((0x90 | count,))
    if count < 1 << 16:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def _groups(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield lists of entries, and long ones by themselves."""
    rest = iter(entries)
    while some := list(islice(rest, 1)):
        if isinstance(some[0], LongMessage):
            yield some[0]
        else:
            # Long messages don't stand between others.
            yield some + list(islice(rest, GROUP - 1))


def _split(encoded: bytes, opening: bytes, closing: bytes) -> tuple[bytes, bytes]:
    """Cut an encoded message where its empty list is: behind the opening of it."""
    empty = opening + closing
    assert encoded.count(empty) == 1, f"{opening!r} stands not once in {encoded[:200]!r}"
    at = encoded.index(empty) + len(opening)
    return encoded[:at], encoded[at:]
