"""A checkpoint file: all records of an image in canonical order, verifiable without other files.

Rule: the same image gives the same bytes on every node, but for the frontier of the tree, which a
node without the tree leaves out. Only a whole file is trusted: each frame
has a checksum, and the footer has a SHA-256 of everything before it.

    header frame   "QRTC": prefix, u32 length of the fields, u32 length of the extensions,
                   fields (MessagePack array), extensions (as in a batch), CRC-32C
    block frames   "QRTK": prefix, u32 count, MessagePack array of `count` records, CRC-32C
                   "QRTT": prefix, u32 count, columns (`snapshots.topic_block`), CRC-32C
    footer frame   "QRTF": prefix, u32 blocks, u64 records, SHA-256 of all before it, CRC-32C

Every frame has the prefix that `ledger.frame` describes. All frames of a file have the format of
its header. Only format 2 has QRTT blocks. They hold all topics and partitions (ADR 0041).
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from ledger.batch import (
    BATCH_BYTES_MAX,
    HASH_BYTES,
    array_head,
    encode_extension_map,
    parse_extension_map,
)
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError
from ledger.frame import CRC_BYTES, FORMAT, PREFIX, finish_frame, take_frame
from snapshots.errors import CheckpointError

HEADER_MAGIC = b"QRTC"
BLOCK_MAGIC = b"QRTK"
TOPICS_MAGIC = b"QRTT"
FOOTER_MAGIC = b"QRTF"

BLOCK_BYTES = 64 * 1024
"""A block ends with the record that makes its records this long, or longer."""
FRAME_BYTES_MAX = BLOCK_BYTES + 2 * BATCH_BYTES_MAX
TOPICS_BYTES_MAX = 8 * BATCH_BYTES_MAX
"""A block of topics may end with a record of nearly a batch. There, each item has up to 4 bytes."""
COLUMNS_FORMAT = 2
FORMATS = (FORMAT, COLUMNS_FORMAT)
STATE_HASH_BYTES = 64
FRONTIER = 10
"""The extension with the frontier of the tree over batches at the image's offset (ADR 0087)."""

_HEADER_HEAD = struct.Struct(">4sHHIII")
_BLOCK_HEAD = struct.Struct(">4sHHII")
_FOOTER = struct.Struct(">4sHHIIQ32s")
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
FOLDER = "checkpoints"
FOOTER_BYTES = _FOOTER.size + CRC_BYTES


class CheckpointId(NamedTuple):
    """Names an image: its end offset, and the epoch of its last batch."""

    offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}"

    @property
    def name(self) -> str:
        """The file name, without folder."""
        return f"{self}.checkpoint"

    @classmethod
    def parse(cls, text: str) -> "CheckpointId":
        """Read an id, or a file name. Raises CheckpointError."""
        found = _NAME.fullmatch(text if text.endswith(".checkpoint") else f"{text}.checkpoint")
        if not found:
            raise CheckpointError(f"not a checkpoint's id: {text[:80]!r}")
        return cls(int(found[1]), int(found[2]))


class _Fields(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    cluster_id: str
    generation: int
    offset: int
    epoch: int
    timestamp_ms: int
    chain_hash: bytes
    state_hash: bytes
    voters: bytes


class CheckpointHeader(msgspec.Struct, frozen=True):
    """Describes the image."""

    cluster_id: str
    offset: int
    """End offset: the image holds records [0, offset)."""
    epoch: int
    """That of the last batch, as `timestamp_ms` and `chain_hash` are."""
    timestamp_ms: int
    chain_hash: bytes
    state_hash: bytes
    """64 bytes: 32 for what brokers share, 32 for what only controllers hold."""
    generation: int = 0
    """The cluster's generation. It rises when a person restores a cluster."""
    voters: bytes = b""
    """The encoded record that names the voters, or empty."""
    extensions: Mapping[int, bytes] = {}
    format: int = FORMAT
    """The format of the file: 1, or `COLUMNS_FORMAT`."""

    @property
    def id(self) -> CheckpointId:
        """The checkpoint's id."""
        return CheckpointId(self.offset, self.epoch)

    @property
    def mark(self) -> LogMark:
        """The mark after the last record of the image."""
        return LogMark(self.offset, self.chain_hash, self.epoch, self.timestamp_ms)


class Block(NamedTuple):
    """The content of a block frame."""

    of_topics: bool
    """True: columns of topics and partitions. False: a MessagePack array of other records."""
    records: int
    """How many records it holds."""
    content: bytes


class Footer(NamedTuple):
    """The end of a checkpoint."""

    blocks: int
    records: int
    digest: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_fields = msgspec.msgpack.Decoder(_Fields).decode


def encode_header(header: CheckpointHeader) -> bytes:
    """Return the header's frame. Raises ValueError."""
    if len(header.chain_hash) != HASH_BYTES or len(header.state_hash) != STATE_HASH_BYTES:
        raise ValueError("a chain hash has 32 bytes and a state hash 64")
    if min(header.offset, header.epoch, header.timestamp_ms, header.generation) < 0:
        raise ValueError(f"a number of the header is below zero: {header}")
    fields = _encode(
        _Fields(
            header.cluster_id,
            header.generation,
            header.offset,
            header.epoch,
            header.timestamp_ms,
            header.chain_hash,
            header.state_hash,
            header.voters,
        )
    )
    extensions = encode_extension_map(header.extensions)
    length = _HEADER_HEAD.size + len(fields) + len(extensions) + CRC_BYTES
    if length > FRAME_BYTES_MAX:
        raise ValueError("the header is too long")
    head = _HEADER_HEAD.pack(HEADER_MAGIC, header.format, 0, length, len(fields), len(extensions))
    return finish_frame(head + fields + extensions)


def parse_header(data: bytes | memoryview) -> tuple[CheckpointHeader, int]:
    """Read the header at the beginning of a checkpoint; returns it and its length.

    Raises DamagedBatchError (`torn` when the data ends too early), UnknownFormatError.
    """
    frame = take_frame(data, 0, HEADER_MAGIC, FRAME_BYTES_MAX, FORMATS)
    if len(frame) < _HEADER_HEAD.size + CRC_BYTES:
        raise DamagedBatchError(0, "the frame is shorter than a checkpoint's header")
    _, version, _, length, fields_bytes, extension_bytes = _HEADER_HEAD.unpack_from(frame)
    extensions_at = _HEADER_HEAD.size + fields_bytes
    if extensions_at + extension_bytes + CRC_BYTES != length:
        raise DamagedBatchError(0, "the parts are not as long as the header")
    encoded = frame[_HEADER_HEAD.size : extensions_at]
    try:
        fields = _decode_fields(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedBatchError(0, f"the header can't be read: {error}") from None
    header = CheckpointHeader(
        cluster_id=fields.cluster_id,
        offset=fields.offset,
        epoch=fields.epoch,
        timestamp_ms=fields.timestamp_ms,
        chain_hash=fields.chain_hash,
        state_hash=fields.state_hash,
        generation=fields.generation,
        voters=fields.voters,
        extensions=parse_extension_map(frame[extensions_at:-CRC_BYTES], 0),
        format=version,
    )
    try:
        canonical = encode_header(header) == frame
    except ValueError as error:
        raise DamagedBatchError(0, str(error)) from None
    if not canonical:
        raise DamagedBatchError(0, "the header is not in canonical form")
    return header, length


class BlockPacker:
    """Packs encoded records into block frames, one record after the other."""

    def __init__(self, version: int = FORMAT) -> None:
        """`version` is the format of the file."""
        self._version = version
        self._records: list[bytes] = []
        self._size = 0

    def add(self, record: bytes) -> tuple[int, bytes] | None:
        """Take a record; return (count, frame) if that fills a block."""
        self._records.append(record)
        self._size += len(record)
        return self.rest() if self._size >= BLOCK_BYTES else None

    def rest(self) -> tuple[int, bytes] | None:
        """Return (count, frame) of the records that are in no block yet; None if there are none."""
        if not self._records:
            return None
        count = len(self._records)
        content = b"".join((array_head(count), *self._records))
        self._records, self._size = [], 0
        return count, encode_block(Block(False, count, content), self._version)


def encode_blocks(records: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Pack encoded records into block frames of format 1; yields (count, frame)."""
    packer = BlockPacker()
    for record in records:
        if (packed := packer.add(record)) is not None:
            yield packed
    if (packed := packer.rest()) is not None:
        yield packed


def encode_block(block: Block, version: int) -> bytes:
    """Return the frame of a block in a file of this format. Raises ValueError if it is too long."""
    magic, most = _KINDS[block.of_topics]
    length = _BLOCK_HEAD.size + len(block.content) + CRC_BYTES
    if length > most:
        raise ValueError(f"a record can't be {len(block.content)} bytes long")
    return finish_frame(_BLOCK_HEAD.pack(magic, version, 0, length, block.records) + block.content)


_KINDS = {False: (BLOCK_MAGIC, FRAME_BYTES_MAX), True: (TOPICS_MAGIC, TOPICS_BYTES_MAX)}


def encode_footer(footer: Footer, version: int = FORMAT) -> bytes:
    """Return the footer's frame."""
    return finish_frame(_FOOTER.pack(FOOTER_MAGIC, version, 0, FOOTER_BYTES, *footer))


class CheckpointChecker:
    """Checks a checkpoint that the caller feeds from its first byte. It keeps no content.

    Raises DamagedBatchError with the position in the file, UnknownFormatError.
    """

    def __init__(self) -> None:
        self.header: CheckpointHeader | None = None
        self.footer: Footer | None = None
        self._digest = sha256()
        self._rest = b""
        self._position = 0
        self._blocks = 0
        self._records = 0

    def feed(self, data: bytes) -> list[Block]:
        """Check the next bytes; return the blocks that they complete."""
        buffer = self._rest + data if self._rest else data
        at = 0
        blocks: list[Block] = []
        try:
            while at < len(buffer):
                at += self._take(buffer, at, blocks)
        except DamagedBatchError as error:
            if not error.torn:
                position = self._position + error.position - at
                raise DamagedBatchError(position, error.reason) from None
        self._rest = buffer[at:]
        return blocks

    def finish(self) -> CheckpointHeader:
        """End the file; return the header. Raises DamagedBatchError if the file is incomplete."""
        if self.header is None or self.footer is None or self._rest:
            raise DamagedBatchError(self._position, "the file ends too early", torn=True)
        return self.header

    def _take(self, buffer: bytes, at: int, blocks: list[Block]) -> int:
        if self.footer is not None:
            raise DamagedBatchError(at, "bytes behind the footer")
        if self.header is None:
            self.header, length = parse_header(buffer)
            self._advance(buffer[at : at + length])
            return length
        if buffer[at : at + 4] == FOOTER_MAGIC:
            return self._take_footer(buffer, at)
        of_topics = self.header.format >= COLUMNS_FORMAT and buffer[at : at + 4] == TOPICS_MAGIC
        frame = self._frame(buffer, at, *_KINDS[of_topics])
        if len(frame) < _BLOCK_HEAD.size + CRC_BYTES:
            raise DamagedBatchError(at, "the frame is shorter than a block's head")
        count = _BLOCK_HEAD.unpack_from(frame)[4]
        content = frame[_BLOCK_HEAD.size : -CRC_BYTES]
        if count < 1 or not (of_topics or content.startswith(array_head(count))):
            raise DamagedBatchError(at, f"the block's records are not an array of {count}")
        self._blocks += 1
        self._records += count
        blocks.append(Block(of_topics, count, content))
        self._advance(frame)
        return len(frame)

    def _take_footer(self, buffer: bytes, at: int) -> int:
        frame = self._frame(buffer, at, FOOTER_MAGIC, FOOTER_BYTES)
        if len(frame) != FOOTER_BYTES:
            raise DamagedBatchError(at, "the frame is not as long as a footer")
        footer = Footer(*_FOOTER.unpack_from(frame)[4:])
        if footer != (self._blocks, self._records, self._digest.digest()):
            raise DamagedBatchError(at, "the footer's counts and digest are of another content")
        self.footer = footer
        self._position += len(frame)
        return len(frame)

    def _frame(self, buffer: bytes, at: int, magic: bytes, most: int) -> bytes:
        """Return the frame at a place behind the header, in the format of the header."""
        assert self.header is not None, "a file begins with its header"
        frame = take_frame(buffer, at, magic, most, FORMATS)
        if PREFIX.unpack_from(frame)[1] != self.header.format:
            raise DamagedBatchError(at, "the frame has another format than the header")
        return frame

    def _advance(self, frame: bytes) -> None:
        self._digest.update(frame)
        self._position += len(frame)
