"""Replay: the state at an offset, by the controllers' own code.

Rule: an auditor's replay is not a second implementation. It folds the same batches by the same
`MetadataDelta`, so equal bytes give equal state hashes; that is what is compared. It begins at
offset 0, or at the newest snapshot at or below the offset where history was cut.
"""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import msgspec

from audit.folder import NoLogError, open_reader
from ledger.chain import LogMark
from ledger.reader import LedgerReader
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_from_records
from metadata.image.metadata_image import hash_from_scratch
from runtime.read_only_disk import ReadOnlyDisk
from snapshots.store import finish_steps, list_checkpoints, load_steps

_BATCHES_PER_DELTA = 4_096


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


def replay(
    folder: Path,
    *,
    to_offset: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """Replay the log in a node's folder up to `to_offset` (its end when None).

    The image is that of whole batches: an offset inside a batch stands for the batch's end.
    Raises NoLogError, LedgerError, ReplayError, OSError.
    """
    reader = open_reader(folder)
    end = reader.log_end if to_offset is None else to_offset
    if end > reader.log_end:
        raise NoLogError(f"{folder}: the log ends at offset {reader.log_end}, before {end}.")
    image, mark = _beginning(folder, reader, end)
    folding = _Fold(image, mark)
    for batch in reader.batches(mark.log_end, end):
        header = batch.header
        folding.delta.replay_all(decode_records(batch.records), header.base_offset)
        folding.delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
        folding.mark = folding.mark.after(batch)
        folding.batches += 1
        if folding.batches % _BATCHES_PER_DELTA == 0:
            folding.settle()
            if on_progress is not None:
                on_progress(folding.mark.log_end, end)
    folding.settle()
    final = msgspec.structs.replace(folding.image, state_hash=hash_from_scratch(folding.image))
    return Replayed(
        folder=str(folder),
        cluster_id=reader.cluster_id,
        from_offset=mark.log_end,
        batches=folding.batches,
        records=folding.mark.log_end - mark.log_end,
        image=final,
        head=folding.mark.head,
        notes=tuple(reader.notes),
    )


class _Fold:
    """The image so far, and the delta that is being filled."""

    def __init__(self, image: MetadataImage, mark: LogMark) -> None:
        self.image = image
        self.mark = mark
        self.batches = 0
        self.delta = MetadataDelta(image, with_state_hash=False)

    def settle(self) -> None:
        """Make an image of what was replayed."""
        self.image = self.delta.apply()
        self.delta = MetadataDelta(self.image, with_state_hash=False)


def _beginning(folder: Path, reader: LedgerReader, end: int) -> tuple[MetadataImage, LogMark]:
    if reader.log_start == 0:
        return EMPTY, LogMark.beginning(reader.cluster_id)
    disk = ReadOnlyDisk(folder)
    usable = [c for c in list_checkpoints(disk) if reader.log_start <= c.offset <= end]
    if not usable:
        raise NoLogError(
            f"{folder}: history begins at offset {reader.log_start}, and no snapshot between "
            f"there and {end} is here to begin from; ask a controller that has the history."
        )
    loaded = finish_steps(load_steps(disk, reader.cluster_id, usable[-1]))
    header = loaded.header
    records = chain.from_iterable(map(decode_records, loaded.blocks))
    image = image_from_records(
        records, header.offset, header.epoch, header.timestamp_ms, with_state_hash=False
    )
    return image, header.mark
