"""Compares replay with the reference over generated histories; this kills the mutants of replay.

Rule: both replay each batch. At its end both have the same state hash, or both refuse the batch.
"""

from collections.abc import Iterable, Iterator

from metadata.codec import encode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.records import NoOpRecord, RequestOutcomeRecord
from tests.histories import HistoryBatch
from tests.reference.folding import fold_records
from tests.reference.schema import RefusedError, decode_records
from tests.reference.state import State

DAY_MS = 24 * 60 * 60 * 1000


def to_the_millisecond() -> Iterator[HistoryBatch]:
    """An outcome, then a batch just before its day is over, then one at its end."""
    outcome = RequestOutcomeRecord(b"k" * 16, b"d" * 32, b"answer", 1_000)
    times = ((outcome, 1_000), (NoOpRecord(), DAY_MS + 999), (NoOpRecord(), DAY_MS + 1_000))
    return (HistoryBatch(n, 1, time, (record,)) for n, (record, time) in enumerate(times))


def product_of(image: MetadataImage, batch: HistoryBatch) -> MetadataImage:
    """Return the image behind one more batch. Raises ReplayError."""
    delta = MetadataDelta(image)
    delta.replay_all(batch.records, batch.base_offset)
    delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta.apply()


def differs(batches: Iterable[HistoryBatch]) -> str:
    """Say where the two differ before both refuse to go on; empty: nowhere."""
    image, state = EMPTY, State()
    for batch in batches:
        refused = []
        try:
            image = product_of(image, batch)
        except ReplayError as error:
            refused.append(f"the product refuses what the reference takes: {error}")
        try:
            records = decode_records(encode_records(batch.records))
            fold_records(state, records, batch.base_offset, batch.epoch, batch.timestamp_ms)
        except RefusedError as error:
            refused.append(f"the reference refuses what the product takes: {error}")
        if refused:
            return refused[0] if len(refused) == 1 else ""
        assert image.state_hash is not None
        if state.hash() != image.state_hash.encode():
            return f"I13: the reference has another state at offset {batch.end_offset}"
    return ""
