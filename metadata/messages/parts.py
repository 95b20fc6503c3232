"""Encodes long messages in parts. The bytes equal those of a message that is encoded at once.

Rule: a message with a long list is encoded with that list empty. Then the list's entries are
encoded in groups and put into its place. So a part takes milliseconds, and the whole message is
never in memory.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from metadata.messages.wire import JSON, MSGPACK

GROUP: Final = 32
"""How many entries are encoded together."""


class LongMessage(NamedTuple):
    """A message and the entries of its long list."""

    head: Any
    """The message, with the list empty. If it has a second long list, in a field before this one,
    the head is a `LongMessage` too."""
    name: str
    """The list's field, as it is encoded."""
    entries: Iterable[Any]
    """Messages, or other values that can be encoded. A long entry is a `LongMessage` itself."""
    length: int
    """How many entries there are."""


class JsonEntries:
    """Entries that are encoded as JSON when they are added.

    `GROUP` of them become one `bytes` object. A reader of the log may find a hundred thousand: as
    dicts they would take a hundred megabytes, the garbage collector would visit each of them, and
    freeing them together would stop the loop for tens of milliseconds.
    """

    def __init__(self) -> None:
        self._full: list[bytes] = []
        self._last: list[bytes] = []
        self._length = 0

    def add(self, entry: Any) -> None:
        """Encode an entry, and add it."""
        self._last.append(msgspec.json.encode(entry))
        self._length += 1
        if len(self._last) == GROUP:
            self._close()

    def extend(self, others: "JsonEntries") -> None:
        """Add the entries of `others`."""
        self._close()
        self._full += others.groups()
        self._length += len(others)

    def clear(self) -> None:
        """Drop all entries."""
        self._full, self._last, self._length = [], [], 0

    def groups(self) -> Iterator[bytes]:
        """Yield the encoded entries in groups of at most `GROUP`, with a comma between two."""
        yield from self._full
        if self._last:
            yield b",".join(self._last)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """Decode the entries, for another format."""
        for group in self.groups():
            yield from msgspec.json.decode(b"[%b]" % group)

    def _close(self) -> None:
        if self._last:
            self._full.append(b",".join(self._last))
            self._last = []


class EncodedOnce:
    """A message that many callers get. Each format is encoded once if the message is short."""

    def __init__(self, message: LongMessage) -> None:
        """The entries are a sequence, since they are read for each format or caller."""
        self.message = message
        self._bytes: dict[str, bytes] = {}

    def encoded(self, content_type: str) -> bytes | None:
        """Return the encoded message; None: it is long, and is to be encoded in parts."""
        if not _fits_one_part(self.message):
            return None
        if content_type not in self._bytes:
            parts = encode_in_parts(self.message, content_type)
            self._bytes[content_type] = b"".join(parts)
        return self._bytes[content_type]


def _fits_one_part(message: LongMessage) -> bool:
    """Return whether a message is so short that it can be encoded in one go."""
    return all(each.length <= GROUP for each in _lists(message)[1])


def encode_in_parts(message: LongMessage, content_type: str) -> Generator[bytes, None, None]:
    """Yield the parts of the encoded message. `content_type` is JSON or MSGPACK."""
    if content_type == MSGPACK:
        return _msgpack_parts(message)
    assert content_type == JSON, content_type
    return _json_parts(message)


def _json_parts(message: LongMessage) -> Generator[bytes, None, None]:
    head, lists = _lists(message)
    rest = msgspec.json.encode(head)
    for each in lists:
        before, rest = _split(rest, f'"{each.name}":['.encode(), b"]")
        yield before
        first = True
        for group in _json_groups(each.entries):
            if not first:
                yield b","
            first = False
            if isinstance(group, bytes):
                yield group
            elif isinstance(group, LongMessage):
                yield from _json_parts(group)
            else:
                yield msgspec.json.encode(group)[1:-1]
    yield rest


def _msgpack_parts(message: LongMessage) -> Generator[bytes, None, None]:
    head, lists = _lists(message)
    rest = msgspec.msgpack.encode(head)
    for each in lists:
        before, rest = _split(rest, msgspec.msgpack.encode(each.name) + b"\x90", b"")
        yield before[:-1] + array_head(each.length)
        for group in _groups(each.entries):
            if isinstance(group, LongMessage):
                yield from _msgpack_parts(group)
            else:
                yield b"".join(map(msgspec.msgpack.encode, group))
    yield rest


def _lists(message: LongMessage) -> tuple[Any, list[LongMessage]]:
    """Return the message itself, and its long lists in the order of its fields."""
    found = [message]
    while isinstance(found[-1].head, LongMessage):
        found.append(found[-1].head)
    return found[-1].head, found[::-1]


def array_head(count: int) -> bytes:
    """Return the head of a MessagePack array with `count` elements."""
    if count < 16:
        return bytes((0x90 | count,))
    if count < 1 << 16:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def _json_groups(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield what `_groups` does, or groups that are encoded already."""
    return entries.groups() if isinstance(entries, JsonEntries) else _groups(entries)


def _groups(entries: Iterable[Any]) -> Iterator[Any]:
    """Yield lists of entries, and each `LongMessage` by itself.

    A `bytes` object is a list of its own. It is a batch of the log, and may have a megabyte.
    """
    group: list[Any] = []
    for entry in entries:
        if isinstance(entry, LongMessage | bytes):
            if group:
                yield group
            group = []
            yield entry if isinstance(entry, LongMessage) else [entry]
        else:
            group.append(entry)
            if len(group) == GROUP:
                yield group
                group = []
    if group:
        yield group


def _split(encoded: bytes, opening: bytes, closing: bytes) -> tuple[bytes, bytes]:
    """Cut an encoded message inside its empty list, after the list's `opening`."""
    empty = opening + closing
    assert encoded.count(empty) == 1, f"{opening!r} is not exactly once in {encoded[:200]!r}"
    at = encoded.index(empty) + len(opening)
    return encoded[:at], encoded[at:]
