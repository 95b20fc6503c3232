"""Backups of every released format can be restored, and read without our code."""

import struct
from hashlib import sha256

import google_crc32c
import msgpack

from audit.places.replicas import one_replica
from audit.questions.verification import verify_replica
from ledger.segments import SEGMENT_BYTES
from logberg.backups.backup_format import BackupEncoder, BackupHeader, FileBegins
from logberg.backups.places import open_backup, place_of
from logberg.backups.reading import verified_parts
from tests.golden.backup_write import FOLDER
from tests.unit.logberg.backups.test_backups import restored

NAME = "20261118T110640.000Z-{:020d}.backup"


def golden():
    """The one backup in the folder."""
    (name,) = place_of(str(FOLDER)).names()
    return FOLDER / name


def test_it_is_restored_and_its_state_is_proved(tmp_path):
    found = restored(golden(), tmp_path, segment_bytes=SEGMENT_BYTES)
    said = verify_replica(one_replica(str(tmp_path / "controller-1")))
    assert said.ok
    assert said.proved == 1
    assert said.replayed_to == found.end.log_end


def test_the_same_content_is_the_same_bytes():
    encoder, out = BackupEncoder(), bytearray()
    for part in verified_parts(open_backup(str(golden()))):
        if isinstance(part, BackupHeader):
            out += encoder.header(part)
        elif isinstance(part, FileBegins):
            out += encoder.file(*part)
        elif isinstance(part, bytes):
            out += encoder.piece(part)
    out += encoder.footer()[1]
    assert bytes(out) == golden().read_bytes()


def test_a_reader_that_was_written_from_the_page_reads_it():
    """docs/format/backups.md, without our code."""
    data = golden().read_bytes()
    at, files, kinds, missing = 0, {}, [], 0
    while at < len(data):
        magic, version, flags, length = struct.unpack_from(">4sHHI", data, at)
        frame = data[at : at + length]
        assert (version, flags) == (1, 0)
        assert google_crc32c.value(frame[:-4]) == int.from_bytes(frame[-4:], "big")
        kinds.append(magic)
        if magic == b"QRTA":
            size, extensions = struct.unpack_from(">II", frame, 12)
            fields = msgpack.unpackb(frame[20 : 20 + size])
            assert frame[20 + size : -4] == b"\x80"
            assert extensions == 1
        elif magic == b"QRTN":
            assert missing == 0
            (missing,) = struct.unpack_from(">Q", frame, 12)
            name = frame[20:-4].decode()
            files[name] = b""
        elif magic == b"QRTD":
            piece = frame[12:-4]
            assert len(piece) == min(missing, 524_288)
            files[name] += piece
            missing -= len(piece)
        else:
            assert magic == b"QRTE"
            count, content, digest = struct.unpack_from(">IQ32s", frame, 12)
            assert count == len(files)
            assert content == sum(map(len, files.values()))
            assert digest == sha256(data[:at]).digest()
        at += length
    assert kinds[0] == b"QRTA"
    assert kinds[-1] == b"QRTE"
    assert len(fields) == 8
    assert [*files] == [f"checkpoints/{fields[6]}", "log/00000000000000000000.log"]
    assert len(fields[4]) == len(fields[5]) == 57
    last = files["log/00000000000000000000.log"]
    assert golden().name == NAME.format(int.from_bytes(fields[5][1:9], "big"))
    assert last.startswith(b"QRTS")
