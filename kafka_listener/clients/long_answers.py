"""Encodes a response with a long array in short steps, so that the event loop isn't held.

The codec encodes a whole response in one call, which takes half a second for 50,000 partitions.
Here it encodes responses that hold a few elements of the array, and the bytes of those elements
are cut out and put together.

Rule: where the array begins and ends is found by comparing two encodings, one with an empty array
and one with an element. So nothing here knows a schema, and the bytes are those of the codec.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from kafka_listener.wire.messages import encode_response
from kafka_listener.wire.schema import Fields
from kafka_listener.wire.varints import encode_uvarint

AT_ONCE: Final = 100
"""How many elements one step encodes. A compact array of so many has its count in one byte."""
EncodeArray = Callable[[Sequence[Fields]], bytes]


class LongElement(NamedTuple):
    """An element that has an array of its own: a topic with its partitions."""

    fields: Fields
    array: str
    """The name of that array's field."""
    length: int
    """How many elements it has."""
    elements: Iterable[Fields]


class Around(NamedTuple):
    """The bytes of a message before the count of an array, and after its last element."""

    before: bytes
    after: bytes
    compact: bool

    @classmethod
    def array(cls, encode: EncodeArray, element: Fields) -> "Around":
        """Compare what `encode` makes of no element and of one."""
        empty, one = encode(()), encode((element,))
        # A count is a 32 bit number, whose last byte changes from 0 to 1, or one byte from 1 to 2.
        last = next(place for place, byte in enumerate(empty) if byte != one[place])
        compact = empty[last] == 1
        return cls(empty[: last + 1 - _count_bytes(compact)], empty[last + 1 :], compact)

    def cut_out(self, encoded: bytes) -> bytes:
        """Return the bytes of the elements, at most AT_ONCE, from an encoding that has them."""
        return encoded[
            len(self.before) + _count_bytes(self.compact) : len(encoded) - len(self.after)
        ]

    def joined(self, count: int, elements: Iterable[bytes]) -> bytes:
        """Return the message with these elements."""
        number = encode_uvarint(count + 1) if self.compact else count.to_bytes(4, "big")
        return b"".join((self.before, number, *elements, self.after))


def encode_in_steps(
    api_key: int, version: int, head: Fields, array: str, elements: Iterable[LongElement]
) -> Generator[None, None, bytes]:
    """Return a response's body. Each step encodes about AT_ONCE elements of elements.

    `head` are the response's fields without `array`.
    """

    def encode(some: Sequence[Fields], of: Fields | None = None) -> bytes:
        return encode_response(api_key, version, {**(of or {}), array: list(some)})

    around: Around | None = None
    pieces: list[bytes] = []
    count = 0
    for group in _groups(elements):
        if around is None:
            around = Around.array(encode, {**group[0].fields, group[0].array: []})
        if group[0].length > AT_ONCE:
            pieces.append((yield from _long(group[0], around, encode)))
        else:
            pieces.append(around.cut_out(encode([_whole(one) for one in group])))
        count += len(group)
        yield
    if around is None:
        return encode((), head)
    # The real head may be large: a thousand brokers. It is encoded only here.
    return Around.array(lambda some: encode(some, head), {}).joined(count, pieces)


def _long(element: LongElement, outer: Around, encode: EncodeArray) -> Generator[None, None, bytes]:
    """Return the bytes of one element whose own array is long."""

    def encode_inner(some: Sequence[Fields]) -> bytes:
        return outer.cut_out(encode(({**element.fields, element.array: list(some)},)))

    rest = iter(element.elements)
    first = next(rest)
    inner = Around.array(encode_inner, first)
    pieces = [inner.cut_out(encode_inner((first,)))]
    while some := _up_to(AT_ONCE, rest):
        pieces.append(inner.cut_out(encode_inner(some)))
        yield
    return inner.joined(element.length, pieces)


def _whole(element: LongElement) -> Fields:
    return {**element.fields, element.array: list(element.elements)}


def _groups(elements: Iterable[LongElement]) -> Iterator[list[LongElement]]:
    """Yield elements together that are short; one that is long comes alone."""
    group: list[LongElement] = []
    weight = 0
    for element in elements:
        if group and weight + element.length >= AT_ONCE:
            yield group
            group, weight = [], 0
        group.append(element)
        weight += element.length + 1
    if group:
        yield group


def _up_to(count: int, rest: Iterator[Fields]) -> list[Fields]:
    return list(islice(rest, count))


def _count_bytes(compact: bool) -> int:
    return 1 if compact else 4
