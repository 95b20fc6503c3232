"""Bytes that are not UTF-8 in place of text are damage, even if their CRC is right."""

import struct

import msgspec
import pytest

from ledger import incoming, index
from ledger.batch import parse
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, LedgerError
from ledger.frame import FORMAT, PREFIX, finish_frame
from snapshots.checkpoint import CheckpointHeader, encode_header, parse_header
from tests.unit.ledger.ledger_world import CLUSTER, make_batch


def test_in_a_batch() -> None:
    encoded = make_batch(LogMark.beginning(CLUSTER)).encoded
    assert b"CreateTopics" in encoded
    forged = finish_frame(encoded[:-4].replace(b"CreateTopics", b"\xdareateTopics"))
    with pytest.raises(DamagedBatchError, match="the provenance can't be read"):
        parse(forged)


def test_in_a_checkpoint_s_header() -> None:
    encoded = encode_header(CheckpointHeader(CLUSTER, 7, 1, 0, bytes(32), bytes(64)))
    forged = finish_frame(encoded[:-4].replace(CLUSTER.encode(), b"\xda" + CLUSTER.encode()[1:]))
    with pytest.raises(DamagedBatchError, match="the header can't be read"):
        parse_header(forged)


def test_in_the_note_of_a_jump() -> None:
    body = msgspec.msgpack.encode((b"mark", (1,), 0))
    for bad in (b"\x93\xa1\xff\x91\x01\x00", b"\xc1", body[:-1]):
        prefix = PREFIX.pack(incoming.MAGIC, FORMAT, 0, PREFIX.size + len(bad) + 4)
        with pytest.raises(LedgerError):
            incoming.CatchUpNote.decode(finish_frame(prefix + bad))


def test_in_a_kept_index() -> None:
    head = struct.pack(">qqq", 0, 9, 100)
    huge = msgspec.msgpack.encode(([2**63], [0], [], 0))
    for bad in (head + b"\x94\xa1\xff\x90\x90\x00", head + huge, head + b"\xc1", head[:8], b""):
        prefix = PREFIX.pack(index.MAGIC, FORMAT, 0, PREFIX.size + len(bad) + 4)
        with pytest.raises(LedgerError):
            index.SegmentIndex.decode(finish_frame(prefix + bad))
