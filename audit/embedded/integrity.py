"""The job `integrity`: what is wrong with the batches of each replica.

Rule: each frame is compared with the frame before it, in the same words as the ledger's own
(`ledger.chain.LogMark`). A frame has one finding at most: the first of checksum, gap, chain, epoch,
time.
"""

from collections.abc import Iterator
from typing import Any, Final

from audit.embedded.batches import FrameFound, frames
from audit.places.replicas import Replica
from audit.reading.feed import Question
from ledger.chain import first_hash
from ledger.errors import LedgerError
from ledger.reader import cluster_id_of

Row = tuple[Any, ...]

BAD_CHECKSUM: Final = "the checksum is wrong"
BROKEN_CHAIN: Final = "the previous hash is not the hash of the batch before: the chain is broken"


def integrity(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.INTEGRITY`."""
    rows = [
        (replica.name, found.base_offset, found.segment, kind, sentence)
        for replica in question.replicas
        for found, kind, sentence in findings(replica, question.up_to)
    ]
    rows.sort(key=lambda row: row[:2])
    return rows


def findings(replica: Replica, up_to: int | None = None) -> Iterator[tuple[FrameFound, str, str]]:
    """Yield (frame, kind, sentence) for each bad frame of a replica."""
    before: FrameFound | None = None
    for found in frames(replica, up_to):
        if before is None:
            wrong = _wrong_at_the_beginning(found, replica)
        else:
            wrong = _wrong(found, before)
        if wrong is not None:
            yield found, *wrong
        before = found


def _wrong_at_the_beginning(found: FrameFound, replica: Replica) -> tuple[str, str] | None:
    if not found.crc_ok:
        return "crc", BAD_CHECKSUM
    try:
        genesis = first_hash(cluster_id_of(replica.disk))
    except LedgerError:
        return None
    if found.base_offset == 0 and found.previous_hash != genesis:
        return "chain", BROKEN_CHAIN
    return None


def _wrong(found: FrameFound, before: FrameFound) -> tuple[str, str] | None:
    if not found.crc_ok:
        return "crc", BAD_CHECKSUM
    if found.base_offset != before.end_offset:
        return "gap", (
            f"offset {before.end_offset} must follow, the batch begins at {found.base_offset}"
        )
    if found.previous_hash != before.hash:
        return "chain", BROKEN_CHAIN
    if found.epoch < before.epoch:
        return "epoch", f"the epoch falls from {before.epoch} to {found.epoch}"
    if found.timestamp_ms < before.timestamp_ms:
        return "time", (f"the timestamp falls from {before.timestamp_ms} to {found.timestamp_ms}")
    return None
