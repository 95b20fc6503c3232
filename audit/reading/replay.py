"""Replay: the state at an offset, by the controllers' own code.

Rule: an auditor's replay is not a second implementation. It folds the same batches by the same
`MetadataDelta`, so equal bytes give equal state hashes; that is what is compared. It begins at
offset 0, or at the newest snapshot at or below the offset where history was cut.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from audit.places.folder import NoLogError, open_reader
from audit.reading.state_start import Start, start_for
from ledger.batch import Batch
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.image.metadata_image import hash_from_scratch
from runtime.read_only_disk import ReadOnlyDisk

_BATCHES_PER_DELTA = 4_096
_RECORDS_PER_DELTA = 1 << 18


class Replayed(msgspec.Struct, frozen=True):
    """A log, replayed."""

    folder: str
    cluster_id: str
    from_offset: int
    """0, or the offset of the snapshot that was begun from."""
    batches: int
    records: int
    image: MetadataImage
    head: bytes
    notes: tuple[str, ...]

    @property
    def state_hash(self) -> bytes:
        """Of what brokers share, 32 bytes."""
        assert self.image.state_hash is not None
        return self.image.state_hash.shared_bytes()


class Fold:
    """An image that batches are folded into, many to a delta."""

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
        """The image of all that was folded."""
        if self._in_delta:
            self._image = self._delta.apply()
            self._delta = self._new_delta()
            self._in_delta = 0
        return self._image

    def take(self, batch: Batch) -> None:
        """Fold one batch. Raises LedgerError, naming its offset, when replay refuses it."""
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
        """Fold batches; yields the offset reached now and then."""
        for batch in batches:
            self.take(batch)
            if self.batches % _BATCHES_PER_DELTA == 0:
                yield self.mark.log_end
        yield self.mark.log_end

    def _new_delta(self) -> MetadataDelta:
        return MetadataDelta(self._image, with_state_hash=self._with_state_hash)


def replay(
    folder: Path,
    *,
    to_offset: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """Replay the log in a node's folder up to `to_offset` (its end when None).

    The image is that of whole batches: an offset inside a batch stands for the batch's end.
    Raises NoLogError, LedgerError, OSError.
    """
    reader = open_reader(folder)
    end = reader.log_end if to_offset is None else to_offset
    if end > reader.log_end:
        raise NoLogError(f"{folder}: the log ends at offset {reader.log_end}, before {end}.")
    if reader.log_start == 0:
        start = Start(EMPTY, LogMark.beginning(reader.cluster_id))
    else:
        start = start_for(ReadOnlyDisk(folder), reader, end)
    fold = Fold(start.image, start.mark)
    for reached in fold.take_all(reader.batches(start.mark.log_end, end)):
        if on_progress is not None:
            on_progress(reached, end)
    image = fold.image
    return Replayed(
        folder=str(folder),
        cluster_id=reader.cluster_id,
        from_offset=start.mark.log_end,
        batches=fold.batches,
        records=fold.mark.log_end - start.mark.log_end,
        image=msgspec.structs.replace(image, state_hash=hash_from_scratch(image)),
        head=fold.mark.head,
        notes=(*start.notes, *reader.notes),
    )
