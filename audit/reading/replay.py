"""Replay: the state at an offset, computed by the controllers' own code.

Rule: an auditor's replay is not a second implementation. It folds the batches with the same
`MetadataDelta` as a controller, so equal bytes give equal state hashes.
"""

from collections.abc import Iterable, Iterator

from ledger.batch import Batch
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records
from metadata.image import MetadataDelta, MetadataImage, ReplayError

_BATCHES_PER_DELTA = 4_096
_RECORDS_PER_DELTA = 1 << 18


class Fold:
    """An image that grows by one batch after another; one delta holds many batches."""

    def __init__(
        self, image: MetadataImage, mark: LogMark, *, with_state_hash: bool = False
    ) -> None:
        self.mark = mark
        self.batches = 0
        self._image = image
        self._with_state_hash = with_state_hash
        self._in_delta = 0
        self._delta = self._new_delta()

    @property
    def image(self) -> MetadataImage:
        """The image of all batches so far."""
        if self._in_delta:
            self._image = self._delta.apply()
            self._delta = self._new_delta()
            self._in_delta = 0
        return self._image

    def take(self, batch: Batch) -> None:
        """Fold one batch. Raises LedgerError, which names the offset, if replay refuses it."""
        header = batch.header
        try:
            self._delta.replay_all(decode_records(batch.records), header.base_offset)
            self._delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        except (RecordDecodeError, ReplayError) as error:
            raise LedgerError(
                f"the batch at offset {header.base_offset} can't be replayed: {error}"
            ) from error
        self.mark = self.mark.after(batch)
        self.batches += 1
        self._in_delta += header.count
        if self._in_delta >= _RECORDS_PER_DELTA:
            _ = self.image

    def take_all(self, batches: Iterable[Batch]) -> Iterator[int]:
        """Fold batches; now and then yields the offset reached."""
        for batch in batches:
            self.take(batch)
            if self.batches % _BATCHES_PER_DELTA == 0:
                yield self.mark.log_end
        yield self.mark.log_end

    def _new_delta(self) -> MetadataDelta:
        return MetadataDelta(self._image, with_state_hash=self._with_state_hash)
