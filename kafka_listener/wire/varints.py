"""Kafka's integers of variable length: seven bits a byte, the lowest first.

`uvarint` is unsigned and stands for lengths and tags. `varint` is signed, zigzag, and stands in
records.
"""

from typing import Final

from kafka_listener.wire.errors import WireError

_MOST_BYTES: Final = 10


def encode_uvarint(number: int) -> bytes:
    """Return an unsigned number's bytes."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number and the position after it.

    Raises WireError if it is longer than 64 bits need, IndexError if the data ends.
    """
    number = data[position]
    if number < 0x80:
        return number, position + 1
    number &= 0x7F
    for index in range(1, _MOST_BYTES):
        byte = data[position + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, position + index + 1
    raise WireError(f"the number at byte {position} has more than {_MOST_BYTES} bytes")


def _encode_varint(number: int) -> bytes:
    return encode_uvarint(number << 1 if number >= 0 else -number * 2 - 1)


_SMALL: Final = tuple(_encode_varint(number) for number in range(8192))


def encode_varint(number: int) -> bytes:
    """Return a signed number's bytes."""
    return _SMALL[number] if 0 <= number < len(_SMALL) else _encode_varint(number)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a signed number and the position after it; raises as `decode_uvarint`."""
    number, position = decode_uvarint(data, position)
    return number >> 1 ^ -(number & 1), position
