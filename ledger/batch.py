"""A batch: the unit that is proposed, committed, chained and read; envelope format 1.

Rule: sealing is deterministic and parsing is strict, so `seal(parse(x)) == x` byte for byte. The
hash covers the whole encoded batch except its CRC. The next batch contains that hash.

    0   magic "QRTB", format, flags, total length (see `frame`)
    12  count                u32, at least 1
    16  base offset          i64
    24  epoch                i64
    32  timestamp            i64, ms since 1970 UTC
    40  previous hash        32 bytes
    72  provenance length    u32
    76  extensions length    u32
    80  provenance           MessagePack array of 9
        records              MessagePack array of `count`
        extensions           MessagePack map, unsigned keys ascending, values bin
        CRC-32C              u32

The head holds all lengths, so code that walks a file reads only the heads.
"""

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec

from ledger.errors import BatchTooLargeError, DamagedBatchError
from ledger.frame import CRC_BYTES, FORMAT, crc32c, take_frame

MAGIC = b"QRTB"
BATCH_BYTES_MAX = 1024 * 1024
"""Limit of an encoded batch, the whole frame."""
HASH_BYTES = 32
REQUEST_ID_BYTES = 16
EXTENSION_KEY_MAX = 2**32 - 1
SEALED = 1
"""Extension: the salted hashes of the sealed fields of the batch's decision, in MessagePack."""
ACTED_AS = 2
"""Extension: what the principal acted as, such as `Broker:7`, if that is not its own name.
UTF-8."""

HEAD = struct.Struct(">4sHHIIqqq32sII")
HEAD_BYTES = HEAD.size

_NO_EXTENSIONS = b"\x80"
_PROVENANCE_HEAD = 0x99


class Provenance(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who wrote a batch, and why. Fields that don't apply are empty."""

    principal: str = ""
    """The authenticated caller: `User:alice`, `Broker:3`; `Controller:1` for the controller's
    own decisions."""
    auth_method: str = ""
    """How the principal was established: none, certificate, token, unix-socket, internal; offline
    for a person who changed a stopped node's files by a command."""
    on_behalf_of: str = ""
    """The user for whom a broker makes the request (KIP-590), if the settings allow that broker
    to."""
    client_address: str = ""
    """The caller's IP address. Of a request that a broker forwards, the client's, by the
    broker's word. It may be sealed (ADR 0093)."""
    client_id: str = ""
    request_id: bytes = b""
    """16 bytes (UUIDv7), or none."""
    request_digest: bytes = b""
    """SHA-256 of the request, or none."""
    operation: str = ""
    reason: str = ""


class BatchHeader(msgspec.Struct, frozen=True):
    """Everything in a batch except its records."""

    base_offset: int
    count: int
    epoch: int
    timestamp_ms: int
    provenance: Provenance
    previous_hash: bytes
    extensions: Mapping[int, bytes] = {}
    """By key. A reader may ignore any of them; the hash covers them all."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + self.count

    @property
    def acted_as(self) -> str:
        """What the principal acted as, such as `Broker:7`; empty if it acted as itself."""
        return self.extensions.get(ACTED_AS, b"").decode(errors="replace")

    def cause(self, id_text: Callable[[bytes], str]) -> dict[str, str]:
        """Return who asked for the batch, how, for whom and why, without what is empty.

        The names are those of JSON. `id_text` writes the request id as text.
        """
        said = self.provenance
        words = {
            "principal": said.principal,
            "actedAs": self.acted_as,
            "authMethod": said.auth_method,
            "onBehalfOf": said.on_behalf_of,
            "clientAddress": said.client_address,
            "clientId": said.client_id,
            "requestId": id_text(said.request_id) if said.request_id else "",
            "operation": said.operation,
            "reason": said.reason,
        }
        return {name: value for name, value in words.items() if value}


class Batch(msgspec.Struct, frozen=True):
    """A sealed batch."""

    header: BatchHeader
    records: bytes
    """MessagePack array of `header.count` records; opaque here."""
    hash: bytes
    encoded: bytes
    """The whole frame, as it lies on disk."""


_decode_provenance = msgspec.msgpack.Decoder(Provenance).decode
_decode_extensions = msgspec.msgpack.Decoder(dict[int, bytes]).decode
_encode = msgspec.msgpack.Encoder().encode


def array_head(count: int) -> bytes:
    """Return the first bytes of a canonical MessagePack array of `count` items."""
    if count < 16:
        return bytes((0x90 | count,))
    if count < 65536:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def seal(header: BatchHeader, records: bytes) -> Batch:
    """Encode a batch, compute its hash and its checksum.

    Raises BatchTooLargeError; ValueError if a field is out of its range.
    """
    _check_fields(header, records)
    provenance = _encode(header.provenance)
    extensions = encode_extension_map(header.extensions) if header.extensions else _NO_EXTENSIONS
    length = HEAD_BYTES + len(provenance) + len(records) + len(extensions) + CRC_BYTES
    if length > BATCH_BYTES_MAX:
        raise BatchTooLargeError(length, BATCH_BYTES_MAX)
    head = HEAD.pack(
        MAGIC,
        FORMAT,
        0,
        length,
        header.count,
        header.base_offset,
        header.epoch,
        header.timestamp_ms,
        header.previous_hash,
        len(provenance),
        len(extensions),
    )
    body = b"".join((head, provenance, records, extensions))
    encoded = body + crc32c(body).to_bytes(CRC_BYTES, "big")
    return Batch(header, records, sha256(body).digest(), encoded)


def parse(data: bytes | memoryview, position: int = 0) -> Batch:
    """Read the batch that begins at `position` and verify everything except the chain.

    Raises DamagedBatchError (`torn` if the data ends too early) or UnknownFormatError.
    """
    frame = take_frame(data, position, MAGIC, BATCH_BYTES_MAX)
    if len(frame) < HEAD_BYTES + CRC_BYTES:
        raise DamagedBatchError(position, "the frame is shorter than a batch's head")
    _, _, _, length, count, base, epoch, timestamp, previous, provenance_bytes, extension_bytes = (
        HEAD.unpack_from(frame)
    )
    records_at = HEAD_BYTES + provenance_bytes
    extensions_at = length - CRC_BYTES - extension_bytes
    if records_at > extensions_at:
        raise DamagedBatchError(position, "the parts are longer than the batch")
    if count < 1 or base < 0 or epoch < 0 or timestamp < 0 or base + count > 2**63 - 1:
        raise DamagedBatchError(position, "a number in the head is out of its range")
    records = frame[records_at:extensions_at]
    if not records.startswith(array_head(count)):
        raise DamagedBatchError(position, f"the records are not an array of {count}")
    header = BatchHeader(
        base,
        count,
        epoch,
        timestamp,
        _parse_provenance(frame[HEAD_BYTES:records_at], position),
        previous,
        _parse_extensions(frame[extensions_at:-CRC_BYTES], position),
    )
    return Batch(header, records, hash_of(frame), frame)


def hash_of(frame: bytes) -> bytes:
    """Return the hash of an encoded batch."""
    return sha256(memoryview(frame)[:-CRC_BYTES]).digest()


def _check_fields(header: BatchHeader, records: bytes) -> None:
    provenance = header.provenance
    if header.count < 1 or header.base_offset < 0 or header.epoch < 0 or header.timestamp_ms < 0:
        raise ValueError(f"a number in the head is out of its range: {header}")
    if header.base_offset + header.count > 2**63 - 1:
        raise ValueError(f"offsets end at 2^63-1, this batch at {header.end_offset}")
    if len(header.previous_hash) != HASH_BYTES:
        raise ValueError("the previous hash must be 32 bytes")
    if len(provenance.request_id) not in (0, REQUEST_ID_BYTES):
        raise ValueError("a request id is 16 bytes, or none")
    if len(provenance.request_digest) not in (0, HASH_BYTES):
        raise ValueError("a request digest is 32 bytes, or none")
    if not records.startswith(array_head(header.count)):
        raise ValueError(f"the records are not a canonical MessagePack array of {header.count}")


def _parse_provenance(data: bytes, position: int) -> Provenance:
    try:
        provenance = _decode_provenance(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedBatchError(position, f"the provenance can't be read: {error}") from None
    if data[0] != _PROVENANCE_HEAD or _encode(provenance) != data:
        raise DamagedBatchError(position, "the provenance is not in canonical form")
    if len(provenance.request_id) not in (0, REQUEST_ID_BYTES):
        raise DamagedBatchError(position, "the request id is not 16 bytes")
    if len(provenance.request_digest) not in (0, HASH_BYTES):
        raise DamagedBatchError(position, "the request digest is not 32 bytes")
    return provenance


def _parse_extensions(data: bytes, position: int) -> Mapping[int, bytes]:
    if data == _NO_EXTENSIONS:
        return {}
    return parse_extension_map(data, position)


def parse_extension_map(data: bytes, position: int) -> dict[int, bytes]:
    """Read an extension map in canonical form. Raises DamagedBatchError."""
    try:
        extensions = _decode_extensions(data)
        canonical = encode_extension_map(extensions) == data
    except (msgspec.MsgspecError, ValueError) as error:
        raise DamagedBatchError(position, f"the extensions can't be read: {error}") from None
    if not canonical:
        raise DamagedBatchError(position, "the extensions are not in canonical form")
    return extensions


def encode_extension_map(extensions: Mapping[int, bytes]) -> bytes:
    """Encode an extension map canonically. Raises ValueError for a bad key."""
    for key in extensions:
        if not 0 <= key <= EXTENSION_KEY_MAX:
            raise ValueError(f"an extension's key is 0 to 2^32-1, not {key}")
    return _encode(dict(sorted(extensions.items())))
