"""A reader of segments and checkpoints that was written from docs/format.md alone.

Rule: it imports nothing of Logberg. If it disagrees with our reader, the page or our reader is
wrong.
"""

import hashlib
import re
import struct

import msgpack

from tests.reference.columns import decode_topics

CRC_TABLE = []
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = (_crc >> 1) ^ (0x82F63B78 if _crc & 1 else 0)
    CRC_TABLE.append(_crc)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def unpack(data):
    return msgpack.unpackb(data, raw=False, strict_map_key=False)


def frames(data):
    """(magic, frame) of a whole file."""
    at = 0
    while at < len(data):
        magic, version, flags, length = struct.unpack_from(">4sHHI", data, at)
        frame = data[at : at + length]
        assert len(frame) == length
        assert struct.unpack(">I", frame[-4:])[0] == crc32c(frame[:-4])
        assert (version, flags) in ((1, 0), (2, 0))
        yield magic.decode(), frame
        at += length


def decode_mark(data):
    version, log_end, epoch, timestamp, head = struct.unpack(">Bqqq32s", data)
    assert version == 1
    return {"log_end": log_end, "epoch": epoch, "timestamp": timestamp, "head": head}


def decode_segment_header(frame):
    base, epoch, timestamp, previous = struct.unpack_from(">qqq32s", frame, 12)
    mark = {"log_end": base, "epoch": epoch, "timestamp": timestamp, "head": previous}
    return mark, frame[68:-4].decode("utf-8")


def decode_batch(frame):
    count, base, epoch, timestamp, previous, p, x = struct.unpack_from(">Iqqq32sII", frame, 12)
    records_at, extensions_at = 80 + p, len(frame) - 4 - x
    provenance = unpack(frame[80:records_at])
    assert len(provenance) == 9
    extensions = unpack(frame[extensions_at:-4])
    assert list(extensions) == sorted(extensions)
    records = unpack(frame[records_at:extensions_at])
    assert len(records) == count
    return {
        "base_offset": base,
        "count": count,
        "epoch": epoch,
        "timestamp_ms": timestamp,
        "previous_hash": previous,
        "provenance": provenance,
        "extensions": extensions,
        "records": records,
        "hash": hashlib.sha256(frame[:-4]).digest(),
    }


def decode_log(files):
    """Return the batches of a log, given as {file name: content}; asserts all promises of the
    page.
    """
    mark = None
    batches = []
    for name in sorted(files):
        kinds = list(frames(files[name]))
        assert [kind for kind, _ in kinds] == ["QRTS"] + ["QRTB"] * (len(kinds) - 1)
        before, cluster_id = decode_segment_header(kinds[0][1])
        assert name == f"{before['log_end']:020d}.log"
        if before["log_end"] == 0:
            assert before["head"] == hashlib.sha256(cluster_id.encode("utf-8")).digest()
        assert mark in (None, before)
        mark = before
        for _, frame in kinds[1:]:
            batch = decode_batch(frame)
            assert batch["base_offset"] == mark["log_end"]
            assert batch["previous_hash"] == mark["head"]
            assert batch["epoch"] >= mark["epoch"]
            assert batch["timestamp_ms"] >= mark["timestamp"]
            mark = {
                "log_end": batch["base_offset"] + batch["count"],
                "epoch": batch["epoch"],
                "timestamp": batch["timestamp_ms"],
                "head": batch["hash"],
            }
            batches.append(batch)
    return batches, mark


def decode_checkpoint(name, data):
    """(header fields, extensions, records) of a checkpoint."""
    kinds = list(frames(data))
    versions = {frame[5] for _, frame in kinds}
    assert len(versions) == 1
    blocks = "(QRTK)*" if versions == {1} else "(QRTK)*(QRTT)*(QRTK)*"
    assert re.fullmatch(f"QRTC{blocks}QRTF", "".join(kind for kind, _ in kinds))
    first = kinds[0][1]
    f, x = struct.unpack_from(">II", first, 12)
    assert 20 + f + x + 4 == len(first)
    fields, extensions = unpack(first[20 : 20 + f]), unpack(first[20 + f : -4])
    assert len(fields) == 8
    assert name == f"{fields[2]:020d}-{fields[3]:010d}.checkpoint"
    records = []
    for kind, frame in kinds[1:-1]:
        topic = records[-1][2] if records and records[-1][0] in (200, 302) else b""
        block = decode_topics(frame, topic) if kind == "QRTT" else unpack(frame[16:-4])
        assert len(block) == struct.unpack_from(">I", frame, 12)[0] > 0
        records += block
    blocks, count, digest = struct.unpack_from(">IQ32s", kinds[-1][1], 12)
    assert (blocks, count) == (len(kinds) - 2, len(records))
    assert digest == hashlib.sha256(data[:-60]).digest()
    return fields, extensions, records
