"""Decodes messages with one long list in steps.

Rule: everything is checked before the first entry counts, as in a short message. A decoder can't be
interrupted, so the list is first cut into its entries, which takes some 4 ms for 50,000, and then
decoded piece by piece. Between two steps other requests are served.

The list of a request is kept encoded. Only JSON may be long there: `check_density` refuses a long
request in MessagePack. The list of a reply is given back decoded.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    overload,
)

import msgspec

from metadata.errors import LogbergError
from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.messages.parts import array_head
from metadata.messages.wire import JSON, OBJECTS_MAX, canonical, check_density, decode, media_type

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)

PIECE: Final = 64
"""Entries that are decoded together, in less than 1 ms."""
VALUES_PER_ENTRY_MAX: Final = 8
"""The most fields and list entries in an entry, on average."""
_LARGE: Final = 128 * 1024
"""Counting the values of a larger request is a step of its own. A shorter reply is decoded at
once."""


class EncodedEntries(Sequence[T], Generic[T]):
    """A list of messages, each piece of which is decoded when it is needed.

    50,000 structs in memory would take long to make, and as long to free.
    """

    def __init__(self, entry_type: type[T]) -> None:
        self._decode = msgspec.msgpack.Decoder(list[entry_type]).decode  # type: ignore[valid-type]
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, entries: Sequence[T]) -> None:
        """Add a piece. All pieces but the last have `PIECE` entries."""
        assert self._length == len(self._pieces) * PIECE
        self._pieces.append(msgspec.msgpack.encode(entries))
        self._length += len(entries)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for piece in self._pieces:
            yield from self._decode(piece)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, int):
            at = range(self._length)[index]
            return self._decode(self._pieces[at // PIECE])[at % PIECE]
        wanted = range(self._length)[index]
        assert wanted.step == 1
        first = wanted.start // PIECE
        pieces = self._pieces[first : -(-wanted.stop // PIECE)]
        found = (entry for piece in pieces for entry in self._decode(piece))
        skipped = wanted.start - first * PIECE
        return list(islice(found, skipped, skipped + len(wanted)))


class LongRequest(NamedTuple):
    """A request with one long list."""

    head: Any
    """The message, with the list empty."""
    entries: EncodedEntries[Any]
    meaning: bytes
    """A digest of all of it. It doesn't depend on the format in which the request was sent."""


def decode_long(
    message_type: type[Any], name: str, body: bytes, content_type: str, *, tolerant: bool = False
) -> Generator[None, None, LongRequest]:
    """Return the message in `body`, whose field `name` is a list that may be long.

    Raises LogbergError as `decode` does, and BODY_TOO_LARGE.
    """
    wanted: Any = message_type
    types = _types(wanted, name)
    values = max(types.most * VALUES_PER_ENTRY_MAX, OBJECTS_MAX)
    check_density(body, content_type, values, max(types.most + 1, OBJECTS_MAX))
    if len(body) > _LARGE:
        yield
    head, raws = _cut(
        message_type, types.tolerant if tolerant else types.strict, name, body, content_type
    )
    digest = sha256(canonical(head))
    entries: EncodedEntries[Any] = EncodedEntries(types.entry)
    for start in range(0, len(raws), PIECE):
        if start:
            yield
        piece = _joined(raws[start : start + PIECE], types.encoded_name, content_type)
        check_density(piece, content_type)
        some = _entries(types, name, piece, start, content_type, tolerant=tolerant)
        digest.update(msgspec.json.encode(some, order="sorted"))
        entries.add(some)
    return LongRequest(head, entries, digest.digest())


def decode_long_reply(
    message_type: type[R], body: bytes, content_type: str
) -> Generator[None, None, R]:
    """Return the reply in `body`. Its first list of messages may be long.

    Raises LogbergError, as `decode` does.
    """
    name = _list_of(message_type)
    if len(body) <= _LARGE or not name:
        return decode(message_type, body, content_type)
    types = _types(message_type, name)
    head, raws = _cut(message_type, types.strict, name, body, content_type)
    entries: list[Any] = []
    for start in range(0, len(raws), PIECE):
        yield
        piece = _joined(raws[start : start + PIECE], types.encoded_name, content_type)
        entries += _entries(types, name, piece, start, content_type)
    return msgspec.structs.replace(head, **{name: tuple(entries)})


def _cut(
    message_type: type[R], cut_type: Any, name: str, body: bytes, content_type: str
) -> tuple[R, list[msgspec.Raw]]:
    """Return the message with the list empty, and the list's entries, still encoded."""
    given = msgspec.structs.asdict(decode(cut_type, body, content_type))
    raws: list[msgspec.Raw] = given.pop(name)
    return message_type(**given, **{name: ()}), raws


def _entries(
    types: "_Types",
    name: str,
    piece: bytes,
    start: int,
    content_type: str,
    *,
    tolerant: bool = False,
) -> list[Any]:
    """Decode a piece that begins at entry `start` of the list."""
    try:
        decoded = decode(types.piece, piece, content_type, tolerant=tolerant)
    except LogbergError as error:
        raise _numbered(error, types.encoded_name, start) from error
    entries: list[Any] = getattr(decoded, name)
    return entries


class _Types(NamedTuple):
    """The classes for one message. Errors in each name the fields as the message itself would."""

    strict: Any
    """The message, with the list cut into its entries."""
    tolerant: Any
    """The same, for a newer client's request with unknown fields."""
    piece: Any
    """Some entries."""
    entry: Any
    encoded_name: str
    most: int
    """The most entries of a request."""


@cache
def _types(message_type: Any, name: str) -> _Types:
    fields = {field.name: field for field in msgspec.structs.fields(message_type)}
    base = ReplyMessage if issubclass(message_type, ReplyMessage) else RequestMessage
    listed, limits = fields[name].type, msgspec.Meta()
    if get_origin(listed) is Annotated:
        listed, limits = get_args(listed)
    entry: Any = get_args(listed)[0]
    some: Any = list[entry]
    cut = Annotated[list[msgspec.Raw], limits]
    made: list[Any] = [
        (field.name, cut if field.name == name else field.type, *_default(field))
        for field in fields.values()
    ]
    title = message_type.__name__
    strict = msgspec.defstruct(title, made, bases=(base,), frozen=True)
    tolerant = msgspec.defstruct(
        title, made, bases=(base,), frozen=True, forbid_unknown_fields=False
    )
    piece = msgspec.defstruct(title, [(name, some)], bases=(base,), frozen=True)
    most = limits.max_length or 0
    return _Types(strict, tolerant, piece, entry, fields[name].encode_name, most)


@cache
def _list_of(message_type: Any) -> str:
    """Return the first field of a reply that is a list of messages; empty: there is none."""
    if not issubclass(message_type, ReplyMessage):
        return ""
    for field in msgspec.structs.fields(message_type):
        if get_origin(field.type) is tuple:
            entry, *rest = get_args(field.type)
            if rest == [...] and isinstance(entry, type) and issubclass(entry, msgspec.Struct):
                return field.name
    return ""


def _default(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.default_factory is not msgspec.NODEFAULT:
        return (msgspec.field(default_factory=field.default_factory),)
    return () if field.required else (field.default,)


def _numbered(error: LogbergError, name: str, start: int) -> LogbergError:
    """Return an error about a piece with the number that the entry has in the whole list."""

    def whole(text: str) -> str:
        return re.sub(
            rf"\b{name}\[(\d+)\]", lambda found: f"{name}[{int(found[1]) + start}]", text, count=1
        )

    details = {key: whole(value) for key, value in error.details.items()}
    return LogbergError(error.code, whole(error.message), details)


def _joined(raws: list[msgspec.Raw], name: str, content_type: str) -> bytes:
    """Return some entries as a message of their own."""
    if media_type(content_type) == JSON:
        return b'{"%b":[%b]}' % (name.encode(), b",".join(raws))
    return b"\x81" + msgspec.msgpack.encode(name) + array_head(len(raws)) + b"".join(raws)
