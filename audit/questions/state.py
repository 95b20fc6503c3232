"""The state at a moment, computed from the nearest checkpoint and the batches after it.

Rule: the answer is the same as that of a replay from offset 0, whichever checkpoint it begins from.
The state hash is computed from the image itself. If a transaction is open at the moment, its
records are in the log but not in the state, and a note says so.
"""

from collections.abc import Callable

import msgspec

from audit.places.replicas import Replica
from audit.reading.moments import MomentError
from audit.reading.readable_log import ReadableLog
from audit.reading.replay import Fold
from audit.reading.state_start import start_for
from metadata.image import MetadataImage
from metadata.image.metadata_image import hash_from_scratch
from metadata.state_hash import StateHash


class ClusterState(msgspec.Struct, frozen=True):
    """The state of a cluster, and how it was computed."""

    replica: str
    """The location of the log, for messages."""
    cluster_id: str
    image: MetadataImage
    """Made of whole batches. Its `state_hash` is None unless it was requested."""
    head: bytes
    """The chain hash at the image's offset. It identifies the history that led to the state."""
    checkpoint: str
    """The checkpoint that replay began from; empty if it began at offset 0."""
    from_offset: int
    batches: int
    """Batches replayed after the checkpoint."""
    notes: tuple[str, ...]

    @property
    def offset(self) -> int:
        """The end offset of the state."""
        return self.image.offset

    @property
    def state_hash(self) -> StateHash:
        """The state hash, which must have been requested."""
        assert self.image.state_hash is not None
        return self.image.state_hash


def state_at(
    replica: Replica,
    offset: int,
    *,
    reader: ReadableLog | None = None,
    with_hash: bool = True,
    snapshots: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> ClusterState:
    """Return the state at an offset. An offset inside a batch means the batch's end.

    `snapshots` False: replay from offset 0 if the history is here. Raises MomentError if the log
    ends before the offset, NoLogError, LedgerError, OSError.
    """
    return states_at(
        replica,
        (offset,),
        reader=reader,
        with_hash=with_hash,
        snapshots=snapshots,
        on_progress=on_progress,
    )[0]


def states_at(
    replica: Replica,
    offsets: tuple[int, ...],
    *,
    reader: ReadableLog | None = None,
    with_hash: bool = True,
    snapshots: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[ClusterState]:
    """Return the states at ascending offsets.

    Each continues from the one before and shares with it.

    So the difference between two is found quickly. A checkpoint between two offsets is not used.
    """
    reader = replica.reader() if reader is None else reader
    if offsets[-1] > reader.log_end:
        raise MomentError(
            f"{replica.location}: the log ends at offset {reader.log_end}, before {offsets[-1]}."
        )
    start = start_for(
        replica.disk, reader, offsets[0], check_content=with_hash, snapshots=snapshots
    )
    fold = Fold(start.image, start.mark)
    states = []
    for offset in offsets:
        for reached in fold.take_all(reader.batches(fold.mark.log_end, offset)):
            if on_progress is not None:
                on_progress(reached - start.mark.log_end, offsets[-1] - start.mark.log_end)
        image = fold.image
        if with_hash:
            image = msgspec.structs.replace(image, state_hash=hash_from_scratch(image))
        states.append(
            ClusterState(
                replica=replica.location,
                cluster_id=reader.cluster_id,
                image=image,
                head=fold.mark.head,
                checkpoint=start.checkpoint.name if start.checkpoint else "",
                from_offset=start.mark.log_end,
                batches=fold.batches,
                notes=(*start.notes, *reader.notes, *_transaction(image)),
            )
        )
    return states


def _transaction(image: MetadataImage) -> tuple[str, ...]:
    transaction = image.transaction
    if transaction is None:
        return ()
    named = f" {transaction.name!r}" if transaction.name else ""
    said = f"a transaction{named} is open since offset {transaction.offset}"
    return (f"{said}: its records are in the log but don't count",)
