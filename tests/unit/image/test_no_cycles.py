"""Replay leaves no reference cycles, so that Python's collector may stay off for hours."""

import gc

import pytest

from metadata.image import EMPTY, MetadataDelta
from tests.histories import History


@pytest.mark.parametrize("seed", range(5))
def test_deltas_leave_no_cycles(seed):
    batches = list(History(seed).batches(60))
    gc.collect()
    gc.disable()
    try:
        image = EMPTY
        for batch in batches:
            delta = MetadataDelta(image)
            delta.replay_all(batch.records, batch.base_offset)
            delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
            image = delta.apply()
        del delta
        assert gc.collect() == 0
    finally:
        gc.enable()
