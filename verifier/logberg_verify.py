#!/usr/bin/env python3
"""Verify a Logberg ledger without Logberg: one file, Python 3.11, its standard library alone.

    python3 logberg_verify.py FOLDER [FOLDER ...] [--head OFFSET:HASH]

A FOLDER is a controller's, or a copy of it, with `log/`, `archive/`, `checkpoints/`; or one that
holds such files directly. It is only read. Several are also compared with each other.

This was written from docs/format.md and docs/format/records.md and shares no line with the product,
so that a mistake in one of them is not repeated in the other. "Section 3" is a section of the page
format.md; have it beside you. From top to bottom: what a bad place is; CRC-32C; MessagePack;
frames; batches; blocks of topics; checkpoints; the manifest; segments in their order; folders side
by side; output.

The rule: what is not as the format says raises `Bad` at its place, and that ends the reading of its
file, as nothing behind it can be trusted. Reading goes on with the next segment, whose header says
what must have been before. So each file names its first bad place; the first one found comes first.
"""

import argparse
import hashlib
import heapq
import itertools
import json
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

# ---- a bad place --------------------------------------------------------------------------------


class Bad(Exception):  # noqa: N818
    """A place that is not as the format says. `byte` counts from its frame, then from its file."""

    def __init__(self, kind: str, byte: int, what: str, expected: object, found: object) -> None:
        super().__init__(what)
        self.kind, self.byte, self.what = kind, byte, what
        texts = (one.hex() if isinstance(one, bytes) else str(one) for one in (expected, found))
        self.expected, self.found = (text[:200] for text in texts)
        self.file, self.offset = "", -1

    def at(self, file: Path | str, frame_at: int, offset: int) -> "Bad":
        """Say where: the file, where the frame begins, the log offset that reading had come to."""
        self.file, self.byte, self.offset = str(file), self.byte + frame_at, offset
        return self

    def __str__(self) -> str:
        offset = f", offset {self.offset}" if self.offset >= 0 else ""
        place = f"{self.file}, byte {self.byte}{offset}"
        return f"[{self.kind}] {place}: {self.what}: expected {self.expected}, found {self.found}"


class Unfinished(Bad):
    """The file ends within a frame: no fault at the end of a running node's last segment."""


def need(right: bool, kind: str, byte: int, what: str, expected: object, found: object) -> None:
    """Raise Bad unless all is right."""
    if not right:
        raise Bad(kind, byte, what, expected, found)


# ---- CRC-32C (section 1) ------------------------------------------------------------------------


def _eight_bits(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def _two_zeros(crc: int) -> int:
    crc = crc >> 8 ^ _ONE[crc & 255]
    return crc >> 8 ^ _ONE[crc & 255]


_ONE = [_eight_bits(number) for number in range(1 << 8)]  # what a byte does to a CRC
_TWO = [_two_zeros(number) for number in range(1 << 16)]  # what two bytes do
_FOUR = [_two_zeros(number) for number in _TWO]  # what two bytes do when two more follow


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), four bytes at a time; of b"123456789" it is e3069283."""
    two, four, crc = _TWO, _FOUR, 0xFFFFFFFF
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        crc ^= word
        crc = four[crc & 0xFFFF] ^ two[crc >> 16]
    for byte in data[whole:]:
        crc = crc >> 8 ^ _ONE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


# ---- canonical MessagePack (section 1) ----------------------------------------------------------

# Values that are one byte.
_BYTES: dict[int, Any] = {number & 255: number for number in range(-32, 128)}
_BYTES |= {0xC0: None, 0xC2: False, 0xC3: True}

# The others, by their first byte: what they are; how wide the number is that follows; that number
# if none follows, else the numbers that may stand there, as no narrower form can hold them.
_FORMS: dict[int, tuple[str, int, Any]] = {
    **{0x80 + count: ("map", 0, count) for count in range(16)},
    **{0x90 + count: ("array", 0, count) for count in range(16)},
    **{0xA0 + size: ("str", 0, size) for size in range(32)},
    0xC4: ("bin", 1, range(1 << 8)),
    0xC5: ("bin", 2, range(1 << 8, 1 << 16)),
    0xC6: ("bin", 4, range(1 << 16, 1 << 32)),
    0xCB: ("float", 8, range(1 << 64)),
    0xCC: ("int", 1, range(1 << 7, 1 << 8)),
    0xCD: ("int", 2, range(1 << 8, 1 << 16)),
    0xCE: ("int", 4, range(1 << 16, 1 << 32)),
    0xCF: ("int", 8, range(1 << 32, 1 << 64)),
    0xD0: ("int", 1, range(-(1 << 7), -32)),
    0xD1: ("int", 2, range(-(1 << 15), -(1 << 7))),
    0xD2: ("int", 4, range(-(1 << 31), -(1 << 15))),
    0xD3: ("int", 8, range(-(1 << 63), -(1 << 31))),
    0xD9: ("str", 1, range(32, 1 << 8)),
    0xDA: ("str", 2, range(1 << 8, 1 << 16)),
    0xDB: ("str", 4, range(1 << 16, 1 << 32)),
    0xDC: ("array", 2, range(16, 1 << 16)),
    0xDD: ("array", 4, range(1 << 16, 1 << 32)),
    0xDE: ("map", 2, range(16, 1 << 16)),
    0xDF: ("map", 4, range(1 << 16, 1 << 32)),
}
_NO_FORM = ("nothing", 1, range(0))


def unpack(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """Read one value. Returns it and where it ends; raises Bad where its form is not canonical.

    An array becomes a list. A map, which only extensions are, becomes a tuple: key, value, key, …
    """
    start, at = at, at + 1
    first = data[start] if start < len(data) else 0xC1  # which stands for nothing
    if first in _BYTES:
        return _BYTES[first], at
    what, width, number = _FORMS.get(first, _NO_FORM)
    if width:
        fitting, signed = number, 0xD0 <= first <= 0xD3
        number = int.from_bytes(data[at : at + width], "big", signed=signed)
        at += width
        if number not in fitting or at > len(data):
            raise Bad("encoding", start, "a form", "canonical MessagePack", data[start:][:9])
    if what == "int":
        return number, at
    if what == "float":
        return struct.unpack_from(">d", data, start + 1)[0], at
    if what in {"str", "bin"}:
        content = data[at : at + number]
        need(len(content) == number, "encoding", start, "bytes of a value", number, len(content))
        try:
            return content.decode() if what == "str" else content, at + number
        except UnicodeDecodeError:
            raise Bad("encoding", start, "a text", "UTF-8", content) from None
    if depth == 16 or (depth and what == "map"):
        raise Bad("encoding", start, "nesting", "no map within, 16 levels at most", what)
    values = []
    for _ in range(2 * number if what == "map" else number):
        if at < len(data) and data[at] in _BYTES:  # as above, for speed: most are
            value, at = _BYTES[data[at]], at + 1
        else:
            value, at = unpack(data, at, depth + 1)
        values.append(value)
    return tuple(values) if what == "map" else values, at


def unpack_whole(data: bytes, at: int, end: int) -> Any:
    """Read the one value that fills data[at:end]."""
    value, stop = unpack(data[:end], at)
    need(stop == end, "length", stop, "where a value ends", end, stop)
    return value


def check_array(data: bytes, at: int, end: int, shape: Sequence[type], what: str) -> list[Any]:
    """Read the array that fills data[at:end]; its elements are of these types."""
    values = unpack_whole(data, at, end)
    right = isinstance(values, list) and [type(value) for value in values] == list(shape)
    need(right, "shape", at, what, " ".join(one.__name__ for one in shape), data[at:end])
    return list(values)


def check_extensions(data: bytes, at: int, end: int) -> None:
    """Section 4: a map of ascending unsigned integers to bytes; what they mean is left open."""
    pairs = unpack_whole(data, at, end)
    right = isinstance(pairs, tuple) and all(type(value) is bytes for value in pairs[1::2])
    right = right and all(type(key) is int and 0 <= key < 1 << 32 for key in pairs[::2])
    right = right and all(one < next_one for one, next_one in itertools.pairwise(pairs[::2]))
    need(right, "shape", at, "extensions", "a map as in section 4", data[at:end])


# Kinds of records (docs/format/records.md); the last three stand in checkpoints only.
_IN_LOG = {4, 100, 200, 302, 400, 502, 700, 800, 900, 1000, 1100, 1200, 1400, 1500, 1703, 1800}
_IN_LOG |= {1900, 2000, 2100, 2200, 2300, 2400, 2500, 2600, 2700, 2800, 2900}
_IN_LOG |= {100100, 100200, 100600, 100700, 100800, 100900, 101000, 101100, 101200, 101300}
_IN_LOG |= {101400, 101500, 101600, 101700, 101900, 102000, 102100, 102200, 103000}
_IN_LOG |= {117100, 117200, 117300, 117400, 117500, 200201, 200500, 200600}
_IN_CHECKPOINT = _IN_LOG | {100300, 100400, 100500}
_OF_CONTROLLERS = {100100, 100500, 100700, 100900, 101100, 101300, 101400, 101500, 101900, 117200}


Records = list[tuple[int, bytes]]  # of each its kind and all its bytes


def records(data: bytes, at: int, end: int, count: int, kinds: set[int]) -> Records:
    """Read the array of `count` records, of some kinds only, that fills data[at:end]."""
    head = bytes([0x90 | count]) if count < 16 else struct.pack(">BH", 0xDC, count & 0xFFFF)
    head = head if count < 1 << 16 else struct.pack(">BI", 0xDD, count)
    start, data, found = at + len(head), data[:end], []
    need(data[at:start] == head, "records", at, f"array of {count} records", head, data[at:start])
    for _ in range(count):
        record, stop = unpack(data, start)
        kind = record[0] if isinstance(record, list) and record else None
        if type(kind) is not int or kind not in kinds:
            raise Bad("records", start, "a record's kind", "one that may stand here", kind)
        found.append((kind, data[start:stop]))
        start = stop
    need(start == end, "records", start, "where the records end", end, start)
    return found


# ---- frames (section 1) -------------------------------------------------------------------------

SEGMENT, BATCH, CHECKPOINT, BLOCK, FOOTER = b"QRTS", b"QRTB", b"QRTC", b"QRTK", b"QRTF"
TOPICS = b"QRTT"
_SIZES = {
    SEGMENT: (72, 4096),
    BATCH: (84, 1 << 20),
    CHECKPOINT: (24, 2_162_688),
    BLOCK: (20, 2_162_688),
    FOOTER: (60, 60),
    TOPICS: (20, 8_388_608),
}


class Frames:
    """The frames of a file, one behind the other."""

    def __init__(self, file: BinaryIO, skip_crc: bool) -> None:
        self._file, self._skip_crc = file, skip_crc
        self.formats = {1}  # the formats that the next frame may have
        self.at = self.end = 0  # where the frame begins that was read last, and where it ends

    def next(self, *magics: bytes, optional: bool = False) -> bytes:
        """Read a frame of one of these kinds; b"" if it is optional and the file ends here.

        Judged in the order of section 1: magic, length, presence, CRC, format and flags.
        """
        self.at = self.end
        frame = self._file.read(12)
        if optional and not frame:
            return b""
        magic, names = frame[:4], b" or ".join(magics).decode()
        right = any(one.startswith(magic) for one in magics)
        need(right, "magic", 0, "how a frame begins", names, magic)
        if len(frame) < 12:
            raise Unfinished("truncated", 0, "bytes of a frame's prefix", 12, len(frame))
        version, flags, length = struct.unpack_from(">HHI", frame, 4)
        least, most = _SIZES[magic]
        sizes = f"{least} to {most}"
        need(least <= length <= most, "length", 8, "length of a frame", sizes, length)
        frame += self._file.read(length - 12)
        if len(frame) < length:
            # What a crash leaves is one frame cut short. Another behind it: this one's length lies.
            whole = BATCH not in frame[12:]
            need(whole, "length", 8, "length of a frame", "where the next one begins", length)
            raise Unfinished("truncated", 0, "bytes of a frame", length, len(frame))
        if not self._skip_crc:
            stored, crc = int.from_bytes(frame[-4:], "big"), crc32c(frame[:-4])
            need(stored == crc, "crc", 0, "CRC of a frame's bytes", f"{stored:08x}", f"{crc:08x}")
        right, what = version in self.formats and flags == 0, "format and flags"
        what, formats = what + " (perhaps a newer release's)", " or ".join(map(str, self.formats))
        need(right, "format", 4, what, f"{formats}, 0", f"{version}, {flags}")
        self.end = self.at + length
        return frame


# ---- batches (sections 3 to 5) ------------------------------------------------------------------


class Mark(NamedTuple):
    """A place between two batches: offset of the next record, and what the last batch said."""

    offset: int
    epoch: int
    timestamp: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.offset}:{self.hash.hex()} (epoch {self.epoch}, timestamp {self.timestamp})"


_BATCH = struct.Struct(">4sHHIIqqq32sII")
_PROVENANCE = [str, str, str, str, str, bytes, bytes, str, str]


def judge_batch(frame: bytes, before: Mark) -> Mark:
    """Judge a batch, also by the place where it stands. Returns the place behind it."""
    fixed = _BATCH.unpack_from(frame)
    length, count, base, epoch, timestamp, previous, provenance_size, extensions_size = fixed[3:]
    need(base == before.offset, "offset", 16, "base offset of the batch", before.offset, base)
    need(previous == before.hash, "chain", 40, "hash of the batch before", before.hash, previous)
    need(epoch >= before.epoch, "epoch", 24, "epoch, which never falls", before.epoch, epoch)
    right, last = timestamp >= before.timestamp, before.timestamp
    need(right, "time", 32, "timestamp, which never falls", last, timestamp)
    need(count > 0 and base + count < 1 << 63, "count", 12, "records", "1 or more", count)
    start, end = 80 + provenance_size, length - 4 - extensions_size
    need(start < end, "length", 72, "room for records", "a byte or more", end - start)
    provenance = check_array(frame, 80, start, _PROVENANCE, "provenance")
    ids = len(provenance[5]), len(provenance[6])
    need(ids[0] in {0, 16} and ids[1] in {0, 32}, "shape", 80, "its ids", "16 and 32 bytes", ids)
    records(frame, start, end, count, _IN_LOG)
    check_extensions(frame, end, length - 4)
    digest = hashlib.sha256(memoryview(frame)[:-4]).digest()
    return Mark(base + count, epoch, timestamp, digest)


# ---- blocks of topics (section 8) ---------------------------------------------------------------


def _head(size: int, short: int, room: int, wide: dict[int, int]) -> bytes:
    """The head of a text, bytes or an array: a byte, or else a form with a number behind it."""
    if size < room:
        return bytes([short | size])
    width = next(width for width in wide if size < 1 << 8 * width)
    return bytes([wide[width]]) + size.to_bytes(width, "big")


def pack(value: Any) -> bytes:
    """Write what a topic or a partition consists of, as canonical MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, list):
        return _head(len(value), 0x90, 16, {2: 0xDC, 4: 0xDD}) + b"".join(map(pack, value))
    if isinstance(value, str):
        text = value.encode()
        return _head(len(text), 0xA0, 32, {1: 0xD9, 2: 0xDA, 4: 0xDB}) + text
    if isinstance(value, bytes):
        return _head(len(value), 0, 0, {1: 0xC4, 2: 0xC5, 4: 0xC6}) + value
    if -32 <= value < 128:
        return bytes([value & 255])
    sign, first = (True, 0xD0) if value < 0 else (False, 0xCC)
    width = next(w for w in (1, 2, 4) if -1 << 8 * w - 1 <= value < 1 << 8 * w)
    return bytes([first + width // 2]) + int(value).to_bytes(width, "big", signed=sign)


_WIDTHS = {0: 0, 1: 1, 2: 1 << 8, 4: 1 << 16}  # of a column, and the least that it must hold
_LIST_ITEMS = 65_536 + (1 << 20)  # what a block that was not full has, and what one batch brings


class Topics:
    """The records in a frame of topics and partitions; raises Bad unless it is as it must be."""

    def __init__(self, frame: bytes, count: int) -> None:
        self._frame, self._at, self._items = frame, 16, 0
        need(1 <= count <= 2048, "count", 12, "records of a block", "1 to 2048", count)
        (number,) = struct.unpack(">I", self._take(4, "number of topics"))
        need(number <= count, "topics", 16, "topics", f"at most {count}", number)
        flag = self._take(1, "flag")[0]
        need(flag < 2, "topics", 20, "flag of a continued topic", "0 or 1", flag)
        self.continued = self._take(16, "topic's id") if flag else None
        sizes = self._ints(number, "name's length", 0)
        names = [self._take(size, "name") for size in sizes]
        ids = [self._take(16, "topic's id") for _ in range(number)]
        self.ids = ids if self.continued is None else [self.continued, *ids]
        self.counts = self._ints(len(self.ids), "number of partitions", 0)
        rows = count - number
        right = sum(self.counts) == rows and not (flag and self.counts[0] == 0)
        need(right, "topics", self._at, "partitions", rows, self.counts)
        self.numbers = self._numbers()
        partitions = self._partitions(rows)
        need(self._at == len(frame) - 4, "length", self._at, "end of a block", len(frame), self._at)
        volumes = iter(self._volumes)
        last = 0
        self.records: Records = []
        places = iter(range(rows))
        for place, (topic, here) in enumerate(zip(self.ids, self.counts, strict=True)):
            if place or not flag:
                last = len(names[place - flag])
                try:
                    name = names[place - flag].decode()
                except UnicodeDecodeError:
                    raise Bad("encoding", 16, "a name", "UTF-8", names[place - flag]) from None
                self.records.append((200, pack([200, name, topic])))
            for _ in range(here):
                row = next(places)
                fields = [302, self.numbers[row], topic, *partitions[row]]
                self.records.append((302, pack(fields)))
                last = next(volumes)
        volume = sum(sizes) + sum(self._volumes)
        need(volume - last < 65_536, "block", 12, "where a block ends", "when it is full", volume)
        self.full = count == 2048 or volume >= 65_536

    def _take(self, size: int, what: str) -> bytes:
        data = self._frame[self._at : min(self._at + size, len(self._frame) - 4)]
        need(len(data) == size, "topics", self._at, f"bytes of a {what}", size, len(data))
        self._at += size
        return data

    def _ints(self, count: int, what: str, low: int = -1 << 31, high: int = (1 << 31) - 1) -> Any:
        """A column."""
        at = self._at
        if not count:
            return []
        base, width = struct.unpack(">iB", self._take(5, what))
        need(width in _WIDTHS, "column", at, f"width of {what}", "0, 1, 2 or 4", width)
        data = self._take(width * count, what)
        more = [0] * count
        if width:
            starts = range(0, len(data), width)
            more = [int.from_bytes(data[start : start + width], "big") for start in starts]
        right = min(more) == 0 and max(more) >= _WIDTHS[width]
        need(right, "column", at, f"the form of {what}", "the shortest", data[:32])
        right = low <= base and base + max(more) <= high
        need(right, "column", at, what, f"{low} to {high}", f"{base} to {base + max(more)}")
        return [base + one for one in more]

    def _lists(self, count: int, what: str, least: int) -> list[list[int]]:
        sizes = self._ints(count, f"length of {what}", least)
        self._items += sum(sizes)
        right = self._items <= _LIST_ITEMS
        need(right, "topics", self._at, "items of lists", f"at most {_LIST_ITEMS}", self._items)
        items = iter(self._ints(sum(sizes), what))
        return [list(itertools.islice(items, size)) for size in sizes]

    def _numbers(self) -> list[int]:
        some = [count for count in self.counts if count]
        firsts = self._ints(len(some), "number", 0)
        gaps = iter(self._ints(sum(some) - len(some), "missing numbers", 0))
        numbers: list[int] = []
        for first, count in zip(firsts, some, strict=True):
            numbers.append(first)
            numbers += [(first := first + next(gaps) + 1) for _ in range(count - 1)]
        most = max(numbers, default=0)
        need(most < 1 << 31, "column", self._at, "number", "less than 2^31", most)
        return numbers

    def _directories(self, replicas: list[list[int]]) -> list[list[bytes]]:
        flags, at = self._ints(len(replicas), "flag of directories", 0, 1), self._at
        sizes = [flag * len(ids) for flag, ids in zip(flags, replicas, strict=True)]
        right = all(size or not flag for size, flag in zip(sizes, flags, strict=True))
        need(right, "topics", at, "directories", "none without replicas", flags)
        (size,) = struct.unpack(">I", self._take(4, "size of the table"))
        need(size <= sum(sizes), "topics", at, "directories", f"at most {sum(sizes)}", size)
        table = [self._take(16, "directory") for _ in range(size)]
        right = all(one < other for one, other in itertools.pairwise(table))
        need(right, "topics", at, "the table of directories", "ascending", size)
        places = self._ints(sum(sizes), "place of a directory", 0, size - 1)
        need(
            len(set(places)) == size, "topics", at, "directories of the table in use", size, "fewer"
        )
        rest = iter(places)
        return [[table[place] for place in itertools.islice(rest, count)] for count in sizes]

    def _partitions(self, rows: int) -> list[list[Any]]:
        """The fields of each partition that stand behind its topic."""
        replicas = self._lists(rows, "replicas", 0)
        directories = self._directories(replicas)
        self._volumes = [len(ids) for ids in replicas]
        sparse: list[list[Any]] = []
        for what in ("isr", "removing", "adding", "elr", "lastKnownElr"):
            usual = replicas if what == "isr" else [[]] * rows
            at, column = self._at, list(usual)
            (count,) = struct.unpack(">I", self._take(4, "number of exceptions"))
            need(count <= rows, "topics", at, "exceptions", f"at most {rows}", count)
            places = self._ints(count, "place of an exception", 0, rows - 1)
            right = all(one < other for one, other in itertools.pairwise(places))
            need(right, "topics", at, "places of exceptions", "ascending", places[:9])
            for place, ids in zip(places, self._lists(count, what, what != "isr"), strict=True):
                need(ids != usual[place], "topics", at, what, "another than the usual", ids)
                column[place] = ids
                self._volumes[place] += len(ids)
            sparse.append(column)
        leader, leader_epoch = self._ints(rows, "leader", -1), self._ints(rows, "leader epoch")
        epoch, recovery = self._ints(rows, "partition epoch"), self._ints(rows, "recovery", 0, 1)
        isr, removing, adding, elr, last_elr = sparse
        columns = [replicas, isr, removing, adding, leader, leader_epoch, epoch, recovery]
        nullable = [[ids or None for ids in column] for column in (elr, last_elr)]
        return [list(row) for row in zip(*columns, directories, *nullable, strict=True)]


class Order:
    """The blocks of a checkpoint, one after the other: each is full if its kind goes on."""

    def __init__(self, has_topics: bool) -> None:
        self._has_topics, self._last, self._open = has_topics, b"", True
        self._topics: Topics | None = None

    def records(self, block: Records) -> None:
        """Judge where a block of records stands and ends."""
        size = sum(len(record) for _, record in block)
        right = self._open and len(block) > 0 and size - len(block[-1][1]) < 65536
        need(right, "block", 12, "where a block ends", "at the record that fills it", size)
        alien = self._has_topics and any(kind in {200, 302} for kind, _ in block)
        need(not alien, "block", 16, "kinds of records", "no topics or partitions", "some")
        self._open, self._last = size >= 65536, BLOCK

    def topics(self, block: Topics) -> Records:
        """Judge where a block of topics stands. Returns its records."""
        before, ids = self._topics, block.ids
        if before is None:
            right = block.continued is None
        else:
            goes_on = block.continued is not None
            right = self._last == TOPICS and before.full
            right = right and block.continued in {None, before.ids[-1]}
            if right and goes_on and before.counts[-1]:
                right = before.numbers[-1] < block.numbers[0]
            ids = [before.ids[-1], *ids[goes_on:]]
        right = right and all(one < other for one, other in itertools.pairwise(ids))
        need(right, "block", 12, "place of a block of topics", "behind a full one", "another")
        self._topics, self._open, self._last = block, True, TOPICS
        return block.records


# ---- checkpoints (section 8) --------------------------------------------------------------------


class Checkpoint(NamedTuple):
    """A checkpoint that is right in itself; whether it belongs to the ledger is asked later."""

    file: str
    cluster: str
    mark: Mark
    digest: bytes


_FIELDS = [str, int, int, int, int, bytes, bytes, bytes]


def _checkpoint_fields(frame: bytes, name: str) -> list[Any]:
    size, extensions_size = struct.unpack_from(">II", frame, 12)
    end, right = 20 + size, 24 + size + extensions_size == len(frame)
    need(right, "length", 12, "fields and extensions", len(frame) - 24, size + extensions_size)
    fields = check_array(frame, 20, end, _FIELDS, "the eight fields")
    right = list(map(len, fields[5:7])) == [32, 64] and min(fields[1:5]) >= 0
    need(right, "shape", 20, "fields", "numbers from 0, 32 and 64 bytes", fields[1:7])
    if fields[7]:
        unpack_whole(fields[7], 0, len(fields[7]))
    check_extensions(frame, end, len(frame) - 4)
    right_name = f"{fields[2]:020}-{fields[3]:010}.checkpoint"
    need(name == right_name, "name", 20, "name by offset and epoch", right_name, name)
    return fields


def _judge_checkpoint(file: BinaryIO, frames: Frames, path: Path) -> Checkpoint:
    frames.formats = {1, 2}
    frame = frames.next(CHECKPOINT)
    frames.formats = {int.from_bytes(frame[4:6], "big")}
    fields = _checkpoint_fields(frame, path.name)
    digest = hashlib.sha256(frame)
    blocks = count = 0
    magics = (BLOCK, TOPICS, FOOTER) if frames.formats == {2} else (BLOCK, FOOTER)
    order = Order(frames.formats == {2})
    sums = [0, 0]  # of what brokers share, of what only controllers hold
    while not (frame := frames.next(*magics)).startswith(FOOTER):
        count_here = int.from_bytes(frame[12:16], "big")
        if frame.startswith(TOPICS):
            block = order.topics(Topics(frame, count_here))
        else:
            block = records(frame, 16, len(frame) - 4, count_here, _IN_CHECKPOINT)
            order.records(block)
        blocks, count = blocks + 1, count + count_here
        digest.update(frame)
        for kind, record in block:
            which = 1 if kind in _OF_CONTROLLERS else 0
            sums[which] += int.from_bytes(hashlib.sha256(record).digest(), "big")
    expected = (blocks, count, digest.hexdigest())
    found = (*struct.unpack_from(">IQ", frame, 12), frame[24:56].hex())
    need(found == expected, "footer", 12, "blocks, records, digest", expected, found)
    more = file.read(1)
    need(not more, "footer", 60, "what stands behind the footer", "nothing", more)
    state = b"".join((one % (1 << 256)).to_bytes(32, "big") for one in sums)
    need(state == fields[6], "state", -frames.at, "state hash, by the records", state, fields[6])
    return Checkpoint(str(path), fields[0], Mark(*fields[2:6]), digest.digest())


def read_checkpoint(path: Path, skip_crc: bool) -> Checkpoint:
    """Read and judge a whole checkpoint."""
    with path.open("rb") as file:
        frames = Frames(file, skip_crc)
        try:
            return _judge_checkpoint(file, frames, path)
        except Bad as bad:
            raise bad.at(path, frames.at, -1) from None


# ---- the manifest (section 9) -------------------------------------------------------------------


def read_manifest(path: Path) -> Mark:
    """Up to where the node has surely synced its ledger."""
    data = path.read_bytes().ljust(16, b"\0")
    length, crc = struct.unpack_from("<II", data, 8)
    right = data[:8] == b"QRTMANI1" and length == len(data) - 16 and crc == crc32c(data[16:])
    need(right, "manifest", 0, "magic, length and CRC", "those of section 9", data[:16])
    body, _ = unpack(data, 16)
    mark = body[4] if isinstance(body, list) and len(body) > 4 else None
    if not isinstance(mark, bytes) or len(mark) != 57 or mark[0] != 1:
        raise Bad("manifest", 16, "the fifth element", "a mark of section 6", mark)
    return Mark(*struct.unpack_from(">qqq32s", mark, 1))


# ---- a folder: segments in their order, and what is known beforehand (sections 2, 5, 7) ---------


class Options(NamedTuple):
    """What the auditor knows, and how strict to be."""

    heads: tuple[tuple[int, bytes], ...] = ()  # (offset, hash), written down earlier
    digests: tuple[tuple[int, bytes], ...] = ()  # (offset, digest) of checkpoints, likewise
    live: bool = False
    whole: bool = False
    skip_crc: bool = False


class Known(NamedTuple):
    """What is known of a place before the ledger is read: all, or (by a head) its hash."""

    offset: int
    expected: Mark | bytes
    source: str


class Replica:
    """One folder; its findings, notes and figures grow while it is read."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.findings: list[Bad] = []
        self.notes: list[str] = []
        self.cluster = ""
        self.first: Mark | None = None  # where history begins here
        self.end: Mark | None = None  # behind the last batch that was read
        self.batches = self.records = 0
        self.gaps: list[tuple[int, int]] = []
        self.checkpoints: list[Checkpoint] = []
        self.known = [Known(*head, "a head written down earlier") for head in options.heads]
        self.marks: dict[int, Mark] = {}  # what the ledger has where something is known
        self.confirmed: list[Known] = []
        log = folder / "log" if (folder / "log").is_dir() else folder
        shelf = folder / "checkpoints" if (folder / "checkpoints").is_dir() else folder
        segments = [*log.glob("*.log"), *(folder / "archive").glob("*.log")]
        self.segments = sorted(segments, key=lambda path: path.name)
        self.shelf = sorted(shelf.glob("*.checkpoint"))
        names = [re.fullmatch(r"([0-9]{20})-([0-9]{20})\.gap", path.name) for path in log.iterdir()]
        self.marked = [(int(found[1]), int(found[2])) for found in names if found]

    def read_what_is_known(self) -> None:
        """Read the manifest, then checkpoints: both say how the ledger is somewhere.

        While a node runs its ledger may grow meanwhile, but not lose what these two know of.
        """
        digests = dict(self.options.digests)
        manifest = self.folder / "manifest"
        for path in [manifest, *self.shelf] if manifest.is_file() else self.shelf:
            try:
                if path == manifest:
                    mark = read_manifest(path)
                else:
                    one = read_checkpoint(path, self.options.skip_crc)
                    mark, expected = one.mark, digests.pop(one.mark.offset, one.digest)
                    need(one.digest == expected, "digest", 0, "known digest", expected, one.digest)
                    self.checkpoints.append(one)
                self.known.append(Known(mark.offset, mark, str(path)))
            except Bad as bad:
                self.findings.append(bad if bad.file else bad.at(path, 0, -1))
        for offset, digest in digests.items():
            gone = Bad("digest", 0, "a checkpoint that is known", digest, "none that is right")
            self.findings.append(gone.at(self.folder, 0, offset))

    def read_log(self) -> Iterator["Batch"]:
        """Read all segments. Yields each batch that is right."""
        offsets = {known.offset for known in self.known}
        mark: Mark | None = None  # where reading is; None: not known, as behind a bad place
        for path, before in zip(self.segments, [None, *self.segments], strict=False):
            if before and path.name == before.name and path.read_bytes() == before.read_bytes():
                self.notes.append(f"{path} is there twice, alike")
                continue
            with path.open("rb") as file:
                frames = Frames(file, self.options.skip_crc)
                try:
                    begin = mark = self._begin_segment(frames, path, mark)
                    self.first = self.first or mark
                    while True:
                        self.end = mark
                        if mark.offset in offsets:
                            self.marks[mark.offset] = mark
                        frame = frames.next(BATCH, optional=mark is not begin)
                        if not frame:
                            break
                        base, mark = mark.offset, judge_batch(frame, mark)
                        self.batches += 1
                        self.records += mark.offset - base
                        yield Batch(base, mark.offset, mark.hash, self, str(path), frames.at)
                except Bad as bad:
                    bad.at(path, frames.at, mark.offset if mark else -1)
                    last = path == self.segments[-1]
                    if self.options.live and last and isinstance(bad, Unfinished):
                        self.notes.append(f"unfinished, as a running node's may be: {bad}")
                    else:
                        self.findings.append(bad)
                        mark = None

    def _begin_segment(self, frames: Frames, path: Path, before: Mark | None) -> Mark:
        """Judge a segment's name and header, and what stands in it of the batch before."""
        right = bool(re.fullmatch(r"[0-9]{20}\.log", path.name))
        need(right, "name", 0, "name of a segment", "20 digits and .log", path.name)
        frame = frames.next(SEGMENT)
        mark, name = Mark(*struct.unpack_from(">qqq32s", frame, 12)), int(path.name[:20])
        need(mark.offset == name, "name", 12, "base offset, by the name", name, mark.offset)
        need(min(mark[1:3]) >= 0, "header", 20, "epoch and timestamp", "0 or more", mark)
        cluster = frame[68:-4].decode(errors="backslashreplace")
        self.cluster = self.cluster or cluster
        need(cluster == self.cluster, "cluster", 68, "cluster id", self.cluster, cluster)
        if not before and (mark.offset == 0 or (self.options.whole and not self.first)):
            before = Mark(0, 0, 0, hashlib.sha256(frame[68:-4]).digest())
        if before is None or mark == before:
            return mark
        need(mark.offset > before.offset, "header", 12, "what was before", before, mark)
        marked = any(a <= before.offset and mark.offset <= b for a, b in self.marked)
        marked = marked and not self.options.whole
        need(marked, "gap", 12, "base offset of the segment", before.offset, mark.offset)
        falls = mark.epoch < before.epoch or mark.timestamp < before.timestamp
        need(not falls, "header", 20, "epoch and timestamp behind a gap", before, mark)
        self.gaps.append((before.offset, mark.offset))
        return mark

    def hold_against_what_is_known(self) -> None:
        """Say of each known place whether the ledger has it, and of checkpoints whose they are."""
        for one in self.checkpoints:
            self.cluster = self.cluster or one.cluster
            if one.cluster != self.cluster:
                bad = Bad("cluster", 20, "cluster id", self.cluster, one.cluster)
                self.findings.append(bad.at(one.file, 0, one.mark.offset))
        broken = {bad.file for bad in self.findings} & {str(path) for path in self.segments}
        first, end = (mark.offset if mark else -1 for mark in (self.first, self.end))
        missing = [*self.gaps, *(span for span in self.marked if span[0] == end)]
        sure = 0
        for offset, expected, source in sorted(self.known, key=lambda known: known.offset):
            mark, is_head = self.marks.get(offset), isinstance(expected, bytes)
            found = mark.hash if mark and is_head else mark
            if found == expected:
                # Not by a checkpoint: who forges a ledger forges checkpoints, too.
                sure = offset if is_head else sure
                self.confirmed.append(Known(offset, expected, source))
                continue
            fault = True
            if mark:
                what = f"either this or the ledger was changed, the latter behind offset {sure}"
            elif broken:
                what, fault = "not reached, as the ledger has a bad place", False
            elif offset < first or end < 0 or any(a < offset <= b for a, b in missing):
                what, fault = "this history is not here", is_head
            elif offset > end:
                what = "the ledger ends before it"
                fault = not (self.options.live and source.endswith(".checkpoint"))
            else:
                what = "no batch ends there"
            if fault:
                bad = Bad("head", 0, what, expected, found or f"the end at {end}")
                self.findings.append(bad.at(self.folder if is_head else source, 0, offset))
            else:
                self.notes.append(f"{source}, offset {offset}: {what}")


# ---- folders side by side -----------------------------------------------------------------------


class Batch(NamedTuple):
    """A batch that is right, and where it lies."""

    base: int
    end: int
    hash: bytes
    replica: Replica
    file: str
    byte: int


def odd_ones(what: str, same: list[Batch]) -> dict[Replica, Bad]:
    """Of batches that should be equal, those that are not as most are (or else as the first is)."""
    counts = Counter(batch.hash for batch in same).most_common(1)
    right, whose = same[0].hash, same[0].file
    if counts[0][1] > len(same) // 2:
        right, whose = counts[0][0], "most folders"
    odd = [one for one in same if one.hash != right]
    what = f"{what}, by {whose}"
    bads = [
        Bad("differs", one.byte, what, right, one.hash).at(one.file, 0, one.base) for one in odd
    ]
    return dict(zip((one.replica for one in odd), bads, strict=True))


def read_and_compare(replicas: list[Replica], show: Callable[[int], None]) -> list[Bad]:
    """Read all ledgers side by side. Returns where each first differs from the others."""
    differing: dict[Replica, Bad] = {}
    latest: dict[Replica, Batch] = {}
    merged = heapq.merge(*(one.read_log() for one in replicas), key=lambda batch: batch.base)
    for base, group in itertools.groupby(merged, key=lambda batch: batch.base):
        show(base)
        # Batches that begin here should be equal; and none that began before should go on here.
        across = [batch for batch in latest.values() if batch.base < base < batch.end]
        same = [one for one in [*across, *group] if one.replica not in differing]
        latest.update({batch.replica: batch for batch in same})
        if len(same) > 1:
            differing |= odd_ones("hash of the batch", same)
    bads = list(differing.values())
    shelf: dict[int, list[Batch]] = {}
    for replica in replicas:
        for one in replica.checkpoints:
            whole = Batch(one.mark.offset, one.mark.offset, one.digest, replica, one.file, 0)
            shelf.setdefault(one.mark.offset, []).append(whole)
        if replica.cluster != replicas[0].cluster:
            bad = Bad("cluster", 0, "cluster id", replicas[0].cluster, replica.cluster)
            bads.append(bad.at(replica.folder, 0, -1))
    for same in shelf.values():
        bads += odd_ones("digest of the checkpoint", same).values()
    return bads


class Report(NamedTuple):
    """What was found, folder by folder, then between them."""

    replicas: list[Replica]
    findings: list[Bad]


def verify(
    folders: Iterable[Path], options: Options, show: Callable[[int], None] = lambda _: None
) -> Report:
    """Verify folders; `show` is told of the offset that reading comes to. Raises OSError."""
    replicas = [Replica(folder, options) for folder in folders]
    for replica in replicas:
        replica.read_what_is_known()
    between = read_and_compare(replicas, show)
    for replica in replicas:
        replica.hold_against_what_is_known()
    return Report(replicas, [*(bad for one in replicas for bad in one.findings), *between])


# ---- output -------------------------------------------------------------------------------------

NOT_PROVED = """\
- That it happened so. Who can write all files can write the ledger anew, from any batch to its end,
  with right hashes. Only what was kept elsewhere shows that: a head (--head), a checkpoint's digest
  (--checkpoint), another controller's folder.
- The last batch, in particular: no other batch holds its hash.
- That a checkpoint's records are the state that the ledger gives at its offset. This tool has no
  state machine; `logberg audit verify` replays.
- That records make sense: their encoding and kinds were checked, not their fields."""


def certificate(replica: Replica) -> dict[str, Any]:
    """What was read in a folder; `head` and `checkpoints` are worth writing down elsewhere."""
    first, end = replica.first, replica.end
    return {
        "folder": str(replica.folder),
        "cluster": replica.cluster,
        "offsets": f"{first.offset} to {end.offset}" if first and end else "none",
        "segments": len(replica.segments),
        "batches": replica.batches,
        "records": replica.records,
        "head": f"{end.offset}:{end.hash.hex()}" if end and not replica.findings else None,
        "checkpoint": [f"{one.mark.offset}:{one.digest.hex()}" for one in replica.checkpoints],
        "confirmed": [f"{one.offset} by {one.source}" for one in replica.confirmed],
        "gap": [f"{one} to {other}" for one, other in replica.gaps],
        "note": replica.notes,
    }


def as_text(report: Report, options: Options) -> str:
    """The report for people."""
    lines = []
    for replica in report.replicas:
        for name, value in certificate(replica).items():
            values = value if isinstance(value, list) else [value]
            lines += [f"{name:11} {one}" for one in values if one is not None]
        lines.append("")
    if options.skip_crc:
        lines += [
            "CRCs were skipped (--skip-crc). SHA-256 covers the same, but for the last batch.",
            "",
        ]
    if report.findings:
        lines += [f"NOT RIGHT. Bad places: {len(report.findings)}, the first one first."]
        return "\n".join([*lines, *map(str, report.findings)])
    lines.append("RIGHT: what was read is as the format says.")
    return "\n".join([*lines, "Not proved:", NOT_PROVED])


def as_json(report: Report, options: Options) -> str:
    """The report for programs."""
    whole = {
        "right": not report.findings,
        "crc_skipped": options.skip_crc,
        "findings": [vars(bad) for bad in report.findings],
        "folders": [certificate(replica) for replica in report.replicas],
        "not_proved": NOT_PROVED,
    }
    return json.dumps(whole, indent=2)


def place(text: str) -> tuple[int, bytes]:
    """Read OFFSET:HASH."""
    if not (found := re.fullmatch(r"([0-9]{1,19}):([0-9a-f]{64})", text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not OFFSET:HASH, with 64 digits from 0 to f")
    return int(found[1]), bytes.fromhex(found[2])


def main(arguments: list[str] | None = None) -> int:
    """Exit codes: 0 all is right, 1 something is not, 2 it cannot be told."""
    parser = argparse.ArgumentParser(description="Verify a Logberg ledger without Logberg.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    known: dict[str, Any] = {"action": "append", "default": [], "type": place}
    add = parser.add_argument
    add("--head", metavar="OFFSET:HASH", help="a head written down earlier", **known)
    add("--heads", metavar="FILE", type=Path, help="such heads, the last word of each line")
    add("--checkpoint", metavar="OFFSET:DIGEST", help="a digest written down earlier", **known)
    for name, what in (
        ("--live", "the node runs: the last segment may end in an unfinished frame"),
        ("--whole", "history must begin at offset 0, and have no gap"),
        ("--skip-crc", "quicker; SHA-256 covers the same bytes"),
        ("--json", "for programs"),
    ):
        add(name, action="store_true", help=what)
    asked = parser.parse_args(arguments)
    shown = itertools.count()

    def show(offset: int) -> None:
        if next(shown) % 500 == 0 and sys.stderr.isatty():
            sys.stderr.write(f"\roffset {offset} \r")

    try:
        lines = asked.heads.read_text().splitlines() if asked.heads else []
        heads = (*asked.head, *(place(line.split()[-1]) for line in lines if line.split()))
        options = Options(heads, tuple(asked.checkpoint), asked.live, asked.whole, asked.skip_crc)
        report = verify(asked.folders, options, show)
    except (OSError, ValueError, argparse.ArgumentTypeError) as error:
        parser.error(str(error))
    for replica in report.replicas:
        if not replica.segments and not replica.shelf:
            parser.error(f"{replica.folder} has no *.log or *.checkpoint")
    sys.stdout.write((as_json if asked.json else as_text)(report, options) + "\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
