"""A backup file: some files of a node's folder in one, verifiable without other files.

Rule: each frame has a checksum, and the footer has a SHA-256 of everything before it. A file's
bytes stand in the backup as they stand in the node's folder, cut into pieces.

    header frame   "QRTA": prefix, u32 length of the fields, u32 length of the extensions,
                   fields (MessagePack array), extensions (as in a batch), CRC-32C
    file frame     "QRTN": prefix, u64 size of the file, its name in UTF-8, CRC-32C
    piece frames   "QRTD": prefix, bytes of that file, CRC-32C; as many as make up its size
    footer frame   "QRTE": prefix, u32 files, u64 bytes in them, SHA-256 of all before it, CRC-32C

Every frame has the prefix that `ledger.frame` describes. A checkpoint, if there is one, is the
first file. The segments of the ledger follow, ascending.
"""

import struct
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ledger.batch import encode_extension_map, parse_extension_map
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, LedgerError
from ledger.frame import CRC_BYTES, PREFIX, finish_frame, take_frame

HEADER_MAGIC: Final = b"QRTA"
FILE_MAGIC: Final = b"QRTN"
PIECE_MAGIC: Final = b"QRTD"
FOOTER_MAGIC: Final = b"QRTE"
BACKUP_FORMAT: Final = 1
PIECE_BYTES: Final = 512 * 1024
"""The bytes of a file in a whole piece. Only a file's last piece may have fewer."""

_HEADER_BYTES_MAX: Final = 1024 * 1024
_FILE_BYTES_MAX: Final = 4096
_PIECE_BYTES_MAX: Final = PREFIX.size + PIECE_BYTES + CRC_BYTES
_HEADER_HEAD = struct.Struct(">4sHHIII")
_FILE_HEAD = struct.Struct(">4sHHIQ")
_FOOTER = struct.Struct(">4sHHIIQ32s")
FOOTER_BYTES: Final = _FOOTER.size + CRC_BYTES
FIRST_BYTES: Final = _HEADER_BYTES_MAX
"""The header lies within so many bytes from the beginning."""


class BackupError(Exception):
    """A backup can't be made, read or restored. The message says why and what to do."""


class SavedVoter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A voter of the quorum when the backup was made. Nobody needs it to restore."""

    node_id: int
    directory_id: bytes
    host: str
    port: int


class _Fields(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    cluster_id: str
    made_at_ms: int
    release: str
    source: str
    start: bytes
    end: bytes
    checkpoint: str
    voters: tuple[SavedVoter, ...]


class BackupHeader(msgspec.Struct, frozen=True):
    """What a backup holds."""

    cluster_id: str
    made_at_ms: int
    """The wall clock of whoever made it."""
    release: str
    """The release of Logberg that made it."""
    source: str
    """The folder or the controller that it was read from, for people."""
    start: LogMark
    """The mark at which its ledger begins: offset 0, or the begin of a segment."""
    end: LogMark
    """The mark at which its ledger ends; its head proves everything before."""
    checkpoint: str
    """File name of the checkpoint in it; empty: there is none."""
    voters: tuple[SavedVoter, ...] = ()
    extensions: Mapping[int, bytes] = {}


class FileBegins(NamedTuple):
    """A file of the node's folder begins."""

    name: str
    """Relative to the node's folder, such as log/00000000000000000000.log."""
    size: int


class BackupFooter(NamedTuple):
    """The end of a backup."""

    files: int
    content_bytes: int
    digest: bytes
    """SHA-256 of all bytes before the footer."""


Part = BackupHeader | FileBegins | bytes | BackupFooter
"""What a backup consists of. Bytes are the next ones of the file that began last."""

_encode = msgspec.msgpack.Encoder().encode
_decode_fields = msgspec.msgpack.Decoder(_Fields).decode


def encode_header(header: BackupHeader) -> bytes:
    """Return the header's frame. Raises ValueError."""
    fields = _encode(
        _Fields(
            header.cluster_id,
            header.made_at_ms,
            header.release,
            header.source,
            header.start.encode(),
            header.end.encode(),
            header.checkpoint,
            header.voters,
        )
    )
    extensions = encode_extension_map(header.extensions)
    length = _HEADER_HEAD.size + len(fields) + len(extensions) + CRC_BYTES
    if length > _HEADER_BYTES_MAX:
        raise ValueError("the header is too long")
    head = _HEADER_HEAD.pack(HEADER_MAGIC, BACKUP_FORMAT, 0, length, len(fields), len(extensions))
    return finish_frame(head + fields + extensions)


def parse_header(data: bytes) -> tuple[BackupHeader, int]:
    """Read the header at the beginning of a backup; returns it and its length.

    Raises DamagedBatchError (`torn` when the data ends too early), UnknownFormatError.
    """
    frame = take_frame(data, 0, HEADER_MAGIC, _HEADER_BYTES_MAX)
    if len(frame) < _HEADER_HEAD.size + CRC_BYTES:
        raise DamagedBatchError(0, "the frame is shorter than a backup's header")
    _, _, _, length, fields_bytes, extension_bytes = _HEADER_HEAD.unpack_from(frame)
    extensions_at = _HEADER_HEAD.size + fields_bytes
    if extensions_at + extension_bytes + CRC_BYTES != length:
        raise DamagedBatchError(0, "the parts are not as long as the header")
    try:
        fields = _decode_fields(frame[_HEADER_HEAD.size : extensions_at])
        start, end = LogMark.decode(fields.start), LogMark.decode(fields.end)
    except (msgspec.MsgspecError, UnicodeDecodeError, LedgerError) as error:
        raise DamagedBatchError(0, f"the header can't be read: {error}") from None
    if not 0 <= start.log_end <= end.log_end:
        raise DamagedBatchError(0, "its ledger ends before it begins")
    header = BackupHeader(
        fields.cluster_id,
        fields.made_at_ms,
        fields.release,
        fields.source,
        start,
        end,
        fields.checkpoint,
        fields.voters,
        parse_extension_map(frame[extensions_at:-CRC_BYTES], 0),
    )
    if encode_header(header) != frame:
        raise DamagedBatchError(0, "the header is not in canonical form")
    return header, length


class BackupEncoder:
    """Makes the frames of a backup, one file after the other."""

    def __init__(self) -> None:
        self._digest = sha256()
        self._files = 0
        self._bytes = 0

    def header(self, header: BackupHeader) -> bytes:
        """Return the first frame."""
        return self._count(encode_header(header))

    def file(self, name: str, size: int) -> bytes:
        """Return the frame that begins a file of this size."""
        self._files += 1
        encoded = name.encode()
        length = _FILE_HEAD.size + len(encoded) + CRC_BYTES
        head = _FILE_HEAD.pack(FILE_MAGIC, BACKUP_FORMAT, 0, length, size)
        return self._count(finish_frame(head + encoded))

    def piece(self, data: bytes) -> bytes:
        """Return the frame of the file's next bytes: `PIECE_BYTES`, or what is left of it."""
        self._bytes += len(data)
        head = PREFIX.pack(PIECE_MAGIC, BACKUP_FORMAT, 0, PREFIX.size + len(data) + CRC_BYTES)
        return self._count(finish_frame(head + data))

    def footer(self) -> tuple[BackupFooter, bytes]:
        """Return the footer, and its frame."""
        footer = BackupFooter(self._files, self._bytes, self._digest.digest())
        frame = _FOOTER.pack(FOOTER_MAGIC, BACKUP_FORMAT, 0, FOOTER_BYTES, *footer)
        return footer, finish_frame(frame)

    def _count(self, frame: bytes) -> bytes:
        self._digest.update(frame)
        return frame


class BackupParser:
    """Checks the frames of a backup that the caller feeds from its first byte.

    Raises DamagedBatchError with the position in the backup, UnknownFormatError.
    """

    def __init__(self) -> None:
        self._digest = sha256()
        self._rest = b""
        self._position = 0
        self._header: BackupHeader | None = None
        self._footer: BackupFooter | None = None
        self._missing = 0
        """Bytes of the present file that have not come yet."""
        self._files = 0
        self._bytes = 0

    def feed(self, data: bytes) -> Iterator[Part]:
        """Check the next bytes; yield the parts that they complete."""
        buffer = self._rest + data if self._rest else data
        at, base = 0, self._position
        try:
            while at < len(buffer):
                frame, part = self._take(buffer, at)
                if not isinstance(part, BackupFooter):
                    self._digest.update(frame)
                at += len(frame)
                self._position = base + at
                yield part
        except DamagedBatchError as error:
            if not error.torn:
                raise DamagedBatchError(base + error.position, error.reason) from None
        self._rest = buffer[at:]

    def finish(self) -> None:
        """End the backup. Raises DamagedBatchError, `torn`, if it is incomplete."""
        if self._footer is None or self._rest:
            raise DamagedBatchError(self._position, "the file ends too early", torn=True)

    def _take(self, buffer: bytes, at: int) -> tuple[bytes, Part]:
        if self._footer is not None:
            raise DamagedBatchError(at, "bytes behind the footer")
        if self._header is None:
            self._header, length = parse_header(buffer)
            return buffer[at : at + length], self._header
        if self._missing:
            return self._take_piece(buffer, at)
        if buffer[at : at + 4] == FOOTER_MAGIC:
            return self._take_footer(buffer, at)
        return self._take_file(buffer, at)

    def _take_piece(self, buffer: bytes, at: int) -> tuple[bytes, Part]:
        frame = take_frame(buffer, at, PIECE_MAGIC, _PIECE_BYTES_MAX)
        data = frame[PREFIX.size : -CRC_BYTES]
        if len(data) != min(self._missing, PIECE_BYTES):
            raise DamagedBatchError(at, "the piece has another length than the file needs")
        self._missing -= len(data)
        self._bytes += len(data)
        return frame, data

    def _take_file(self, buffer: bytes, at: int) -> tuple[bytes, Part]:
        frame = take_frame(buffer, at, FILE_MAGIC, _FILE_BYTES_MAX)
        if len(frame) <= _FILE_HEAD.size + CRC_BYTES:
            raise DamagedBatchError(at, "the frame is shorter than that of a file")
        self._missing = _FILE_HEAD.unpack_from(frame)[4]
        self._files += 1
        try:
            name = frame[_FILE_HEAD.size : -CRC_BYTES].decode()
        except UnicodeDecodeError:
            raise DamagedBatchError(at, "the file's name is not text") from None
        if self._missing < 1:
            raise DamagedBatchError(at, f"the file {name[:80]!r} is empty")
        return frame, FileBegins(name, self._missing)

    def _take_footer(self, buffer: bytes, at: int) -> tuple[bytes, Part]:
        frame = take_frame(buffer, at, FOOTER_MAGIC, FOOTER_BYTES)
        if len(frame) != FOOTER_BYTES:
            raise DamagedBatchError(at, "the frame is not as long as a footer")
        footer = BackupFooter(*_FOOTER.unpack_from(frame)[4:])
        if footer != (self._files, self._bytes, self._digest.digest()):
            raise DamagedBatchError(at, "the footer's counts and digest are of another content")
        self._footer = footer
        return frame, footer
