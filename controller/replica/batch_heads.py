"""Reads offsets and epoch from the head of an encoded batch, without decoding the rest."""

from typing import NamedTuple

from ledger.batch import HEAD, HEAD_BYTES


class BatchHead(NamedTuple):
    """The numbers in a batch's head."""

    base_offset: int
    end_offset: int
    epoch: int


def head_of(encoded: bytes) -> BatchHead | None:
    """Return the head; None if the bytes are too short. Nothing is verified."""
    if len(encoded) < HEAD_BYTES:
        return None
    _, _, _, _, count, base_offset, epoch, *_ = HEAD.unpack_from(encoded)
    return BatchHead(base_offset, base_offset + count, epoch)
