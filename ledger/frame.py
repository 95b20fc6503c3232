"""The outermost shape of everything in ledger and checkpoint files: a frame.

Rule: every format, now and later, begins with these 12 bytes and ends with a CRC-32C of all bytes
before it. So a reader can tell a damaged frame from one of a newer release:

    0  magic         4 bytes, names the kind
    4  format        u16
    6  flags         u16, zero in format 1
    8  total length  u32, of the whole frame, CRC included
       ...
    -4 CRC-32C       u32

Integers are big-endian.
"""

import struct
from collections.abc import Sequence

import google_crc32c

from ledger.errors import DamagedBatchError, UnknownFormatError

FORMAT = 1
PREFIX = struct.Struct(">4sHHI")
PREFIX_BYTES = PREFIX.size
CRC_BYTES = 4

_crc32c = google_crc32c.value


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of `data`."""
    value: int = _crc32c(data)
    return value


def finish_frame(body: bytes) -> bytes:
    """Append the checksum to a frame that lacks only that."""
    return body + crc32c(body).to_bytes(CRC_BYTES, "big")


def frame_length(data: bytes | memoryview, position: int, magic: bytes, most: int) -> int:
    """Return the total length of the frame at `position`, if all of it is there.

    Raises DamagedBatchError, `torn` if the data ends before the frame.
    """
    available = len(data) - position
    if available < PREFIX_BYTES:
        if bytes(data[position : position + 4]) != magic[:available]:
            raise DamagedBatchError(position, f"no {magic.decode()} frame begins here")
        raise DamagedBatchError(position, "the file ends inside a frame", torn=True)
    found, _, _, length = PREFIX.unpack_from(data, position)
    if found != magic:
        raise DamagedBatchError(position, f"no {magic.decode()} frame begins here")
    if not PREFIX_BYTES + CRC_BYTES <= length <= most:
        raise DamagedBatchError(position, f"a frame can't be {length} bytes long")
    if length > available:
        raise DamagedBatchError(
            position, f"the file ends {length - available} bytes before the frame does", torn=True
        )
    return int(length)


def take_frame(
    data: bytes | memoryview,
    position: int,
    magic: bytes,
    most: int,
    formats: Sequence[int] = (FORMAT,),
) -> bytes:
    """Return the frame at `position`, its checksum and format verified.

    Raises DamagedBatchError; UnknownFormatError if the frame is whole but has none of `formats`.
    """
    length = frame_length(data, position, magic, most)
    frame = bytes(data[position : position + length])
    if _crc32c(frame[:-CRC_BYTES]) != int.from_bytes(frame[-CRC_BYTES:], "big"):
        raise DamagedBatchError(position, "the checksum (CRC-32C) does not fit the bytes")
    _, version, flags, _ = PREFIX.unpack_from(frame)
    if version not in formats or flags:
        raise UnknownFormatError(position, version, flags, known=formats)
    return frame
