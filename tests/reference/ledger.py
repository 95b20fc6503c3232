"""Reads batches and checkpoints from the bytes of files, as docs/format.md describes them.

Rule: it checks every frame, every link of the chain and every order that the page promises. It also
refuses an incomplete frame at a file's end, unless the caller says that the node runs.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import google_crc32c

from tests.reference.columns import decode_topics
from tests.reference.schema import RefusedError, decode, encode


class Batch(NamedTuple):
    """Records that count together or not at all."""

    base: int
    count: int
    epoch: int
    timestamp_ms: int
    provenance: list[Any]
    records: bytes
    hash: bytes

    @property
    def end(self) -> int:
        return self.base + self.count

    @property
    def request_id(self) -> bytes:
        return self.provenance[5]

    @property
    def operation(self) -> str:
        return self.provenance[7]


class Mark(NamedTuple):
    """A place in a log, with what the next batch must continue."""

    end: int
    epoch: int
    timestamp_ms: int
    head: bytes


class Checkpoint(NamedTuple):
    """A state in a file."""

    offset: int
    epoch: int
    timestamp_ms: int
    chain_hash: bytes
    state_hash: bytes
    records: bytes
    """All of them in one array."""

    @property
    def mark(self) -> Mark:
        return Mark(self.offset, self.epoch, self.timestamp_ms, self.chain_hash)


def frames(
    data: bytes, *, unfinished: bool = False, highest: int = 1
) -> Iterator[tuple[bytes, bytes]]:
    """Give (magic, frame) of a file in a format from 1 to `highest`.

    An unfinished end is passed over if it may be there.
    """
    at = 0
    while at < len(data):
        whole = len(data) - at >= 16
        if whole:
            magic, version, flags, length = struct.unpack_from(">4sHHI", data, at)
            frame = data[at : at + length]
            whole = len(frame) == length >= 16
        if not whole or struct.unpack(">I", frame[-4:])[0] != google_crc32c.value(frame[:-4]):
            if unfinished:
                return
            raise RefusedError(f"no whole frame at byte {at}")
        if not 1 <= version <= highest or flags:
            raise RefusedError(f"format {version}, flags {flags} at byte {at}")
        yield magic, frame
        at += length


def _batch(frame: bytes) -> tuple[Batch, bytes]:
    count, base, epoch, timestamp, previous, p, x = struct.unpack_from(">Iqqq32sII", frame, 12)
    first, last = 80 + p, len(frame) - 4 - x
    provenance, extensions = decode(frame[80:first]), decode(frame[last:-4])
    if len(provenance) != 9 or list(extensions) != sorted(extensions):
        raise RefusedError(f"provenance or extensions of the batch at {base}")
    digest = sha256(frame[:-4]).digest()
    return Batch(base, count, epoch, timestamp, provenance, frame[first:last], digest), previous


def first_mark(cluster_id: str) -> Mark:
    """Return the mark before the first batch of a cluster."""
    return Mark(0, 0, 0, sha256(cluster_id.encode()).digest())


def read_log(files: Mapping[str, bytes], *, live: bool = False) -> tuple[Mark, list[Batch]]:
    """Return where the log begins and its batches, of {name: content}, in one unbroken chain."""
    batches: list[Batch] = []
    begin: Mark | None = None
    mark = None
    for name in sorted(files):
        kinds = frames(files[name], unfinished=live and name == max(files))
        magic, frame = next(kinds, (b"", b""))
        if magic != b"QRTS":
            raise RefusedError(f"{name} does not begin with a segment's header")
        here = Mark(*struct.unpack_from(">qqq32s", frame, 12))
        if name.rpartition("/")[2] != f"{here.end:020d}.log" or mark not in (None, here):
            raise RefusedError(f"{name} does not go on where the log ended")
        if here.end == 0 and here != first_mark(frame[68:-4].decode()):
            raise RefusedError(f"{name} begins with another hash than the cluster's")
        begin, mark = begin or here, here
        for magic, frame in kinds:
            if magic != b"QRTB":
                raise RefusedError(f"{name} holds a frame {magic!r}")
            batch, previous = _batch(frame)
            if (batch.base, previous) != (mark.end, mark.head) or batch.count < 1:
                raise RefusedError(f"the batch at {batch.base} does not continue the chain")
            if batch.epoch < mark.epoch or batch.timestamp_ms < mark.timestamp_ms:
                raise RefusedError(f"epoch or time of the batch at {batch.base} fell")
            mark = Mark(batch.end, batch.epoch, batch.timestamp_ms, batch.hash)
            batches.append(batch)
    if begin is None:
        raise RefusedError("no segment")
    return begin, batches


def read_checkpoint(name: str, data: bytes) -> Checkpoint:
    """Return what a checkpoint's file holds, verified whole."""
    (first, head), *blocks, (last, foot) = frames(data, highest=2)
    versions = {frame[4:6] for frame in (head, foot, *(frame for _, frame in blocks))}
    order = rb"QRTC(QRTK)*QRTF" if head[5] == 1 else rb"QRTC(QRTK)*(QRTT)*(QRTK)*QRTF"
    magics = b"".join((first, *(magic for magic, _ in blocks), last))
    if len(versions) != 1 or not re.fullmatch(order, magics):
        raise RefusedError(f"{name}: the frames of a checkpoint are others")
    f, _ = struct.unpack_from(">II", head, 12)
    fields = decode(head[20 : 20 + f])
    records: list[Any] = []
    for magic, block in blocks:
        if magic == b"QRTT":
            # Its last record is of the topic that the next block may continue.
            before = records[-1][2] if records and records[-1][0] in (200, 302) else b""
            records += decode_topics(block, before)
        else:
            records += decode(block[16:-4])
    counts = [struct.unpack_from(">I", block, 12)[0] for _, block in blocks]
    told = struct.unpack_from(">IQ32s", foot, 12)
    if told != (len(blocks), sum(counts), sha256(data[:-60]).digest()):
        raise RefusedError(f"{name}: the footer is not that of this file")
    _, _, offset, epoch, timestamp, chain_hash, state_hash, _ = fields
    if name.rpartition("/")[2] != f"{offset:020d}-{epoch:010d}.checkpoint":
        raise RefusedError(f"{name}: the header says offset {offset} and epoch {epoch}")
    return Checkpoint(offset, epoch, timestamp, chain_hash, state_hash, encode(records))
