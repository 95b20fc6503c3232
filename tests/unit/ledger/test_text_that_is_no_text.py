"""Bytes that are not UTF-8 where text should be are damage, whatever their CRC says."""

import pytest

from ledger.batch import parse
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError
from ledger.frame import finish_frame
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
