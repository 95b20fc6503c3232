"""Gives damaged frames right lengths and checksums again.

Nearly every damaged frame fails at its checksum, so a fuzzer without this would only ever test the
checksum.
"""

from hashlib import sha256
from typing import Final

import google_crc32c

from ledger.batch import HEAD_BYTES, hash_of
from ledger.frame import CRC_BYTES, PREFIX_BYTES, crc32c
from runtime.links.frames import HEADER, framed

_LENGTH: Final = slice(8, 12)
_PREVIOUS_HASH: Final = slice(40, 72)
_BATCH: Final = b"QRTB"
_PIECE: Final = b"QRTD"
_BLOCKS: Final = (b"QRTK", b"QRTT")
_FOOTERS: Final = {b"QRTF": "checkpoint", b"QRTE": "backup"}
_FOOTER_BYTES: Final = 60
_FILE: Final = b"QRTN"


def frames(data: bytes) -> bytes:
    """Repair the frames of a ledger, a checkpoint or a backup: lengths, CRCs, chain, digests."""
    out, at = bytearray(), 0
    counts = _Counts()
    while len(data) - at >= PREFIX_BYTES + CRC_BYTES and data[at : at + 3] == b"QRT":
        length = int.from_bytes(data[at + 8 : at + 12], "big")
        if not PREFIX_BYTES + CRC_BYTES <= length <= len(data) - at:
            length = len(data) - at
        out += _repaired(bytearray(data[at : at + length]), bytes(out), counts)
        at += length
    return bytes(out) + data[at:]


class _Counts:
    def __init__(self) -> None:
        self.blocks = self.records = self.files = self.content = 0
        self.previous = b""


def _repaired(frame: bytearray, before: bytes, counts: _Counts) -> bytes:
    magic = bytes(frame[:4])
    frame[_LENGTH] = len(frame).to_bytes(4, "big")
    if magic == _BATCH and len(frame) >= HEAD_BYTES and counts.previous:
        frame[_PREVIOUS_HASH] = counts.previous
    elif magic == _PIECE:
        frame[PREFIX_BYTES:-CRC_BYTES] = frames(bytes(frame[PREFIX_BYTES:-CRC_BYTES]))
        counts.content += len(frame) - PREFIX_BYTES - CRC_BYTES
    elif magic == _FILE:
        counts.files += 1
    elif magic in _BLOCKS and len(frame) >= PREFIX_BYTES + 2 * CRC_BYTES:
        counts.blocks += 1
        counts.records += int.from_bytes(frame[12:16], "big")
    elif magic in _FOOTERS and len(frame) == _FOOTER_BYTES:
        of_backup = _FOOTERS[magic] == "backup"
        first, second = (
            (counts.files, counts.content) if of_backup else (counts.blocks, counts.records)
        )
        frame[12:16] = first.to_bytes(4, "big")
        frame[16:24] = second.to_bytes(8, "big")
        frame[24:56] = sha256(before).digest()
    frame[-CRC_BYTES:] = crc32c(bytes(frame[:-CRC_BYTES])).to_bytes(CRC_BYTES, "big")
    if magic == _BATCH:
        counts.previous = hash_of(bytes(frame))
    return bytes(frame)


def link_frames(data: bytes) -> bytes:
    """Repair the frames of a link: each as long as its length says, or all that is left."""
    out, at = bytearray(), 0
    while len(data) - at >= HEADER.size:
        length = int.from_bytes(data[at : at + 4], "big")
        start = at + HEADER.size
        payload = data[start : start + length]
        out += framed(payload)
        at = start + len(payload)
    return bytes(out) + data[at:]


def manifest(data: bytes) -> bytes:
    """Repair the head of a journal's manifest."""
    body = data[16:]
    head = data[:8] + len(body).to_bytes(4, "little")
    return head + int(google_crc32c.value(body)).to_bytes(4, "little") + body


def kafka_batch(data: bytes) -> bytes:
    """Repair length and checksum of one of Kafka's record batches."""
    checked = data[21:]
    crc = int(google_crc32c.value(checked))
    length = max(0, len(data) - 12)
    return data[:8] + length.to_bytes(4, "big") + data[12:17] + crc.to_bytes(4, "big") + checked
