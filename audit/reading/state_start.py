"""Where a replay may begin: the nearest checkpoint at or below an offset that can be believed.

Rule: a checkpoint is believed when every byte of it is right, when its chain hash is that of the
log at its offset, and, where the state hash is wanted, when its content has the state hash that its
header tells and is the whole snapshot of that state. One that isn't is said, and the one before it
is taken. (That its content is what the log before it gives is proved by replay only: see
`audit.questions.verification`.)
"""

from collections.abc import Sequence
from itertools import chain, islice

import msgspec

from audit.places.folder import NoLogError
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from metadata.codec import RecordDecodeError, decode_records, encode_records
from metadata.image import (
    EMPTY,
    MetadataImage,
    ReplayError,
    image_from_records,
    image_to_records,
)
from metadata.image.metadata_image import hash_from_scratch
from runtime.disk import Disk
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointError, CheckpointNotFoundError
from snapshots.store import LoadedCheckpoint, finish_steps, list_checkpoints, load_steps

_records_of = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Start(msgspec.Struct, frozen=True):
    """An image to begin from, and the place in the log behind it."""

    image: MetadataImage
    mark: LogMark
    checkpoint: CheckpointId | None = None
    notes: tuple[str, ...] = ()
    """What was wrong with nearer checkpoints."""


class UnbelievableCheckpointError(Exception):
    """Why a checkpoint isn't what it should be; a sentence without its name."""


def start_for(
    disk: Disk,
    reader: LedgerReader,
    end: int,
    *,
    check_content: bool = True,
    snapshots: bool = True,
) -> Start:
    """Return where to begin for the state at `end`.

    Without `snapshots` at the beginning of the log, wherever it is there. Raises NoLogError,
    LedgerError, OSError.
    """
    notes: list[str] = []
    if snapshots or reader.log_start:
        for checkpoint in reversed(list_checkpoints(disk)):
            if not reader.log_start <= checkpoint.offset <= end:
                continue
            try:
                loaded = load(disk, reader.cluster_id, checkpoint)
                hold_against_log(loaded, reader)
                image = image_of(loaded, check=check_content)
            except CheckpointNotFoundError:
                continue  # thinned out since it was listed
            except UnbelievableCheckpointError as error:
                notes.append(f"{FOLDER}/{checkpoint.name} is not believed: {error}")
                continue
            return Start(image, loaded.header.mark, checkpoint, tuple(notes))
    if reader.log_start:
        raise NoLogError(
            f"history begins at offset {reader.log_start}, and no snapshot between there and "
            f"{end} is here to begin from; ask a controller that has the history."
            + "".join(f" {note}." for note in notes)
        )
    return Start(EMPTY, LogMark.beginning(reader.cluster_id), None, tuple(notes))


def load(disk: Disk, cluster_id: str | None, checkpoint: CheckpointId) -> LoadedCheckpoint:
    """Load and verify a checkpoint's bytes.

    Raises UnbelievableCheckpointError, CheckpointNotFoundError.
    """
    try:
        return finish_steps(load_steps(disk, cluster_id, checkpoint))
    except (CheckpointNotFoundError, FileNotFoundError) as error:
        raise CheckpointNotFoundError(str(error)) from None
    except (CheckpointError, LedgerError, OSError) as error:
        raise UnbelievableCheckpointError(str(error)) from None


def hold_against_log(loaded: LoadedCheckpoint, reader: LedgerReader) -> None:
    """Compare a checkpoint's chain hash with the log's. Raises UnbelievableCheckpointError."""
    header = loaded.header
    found = reader.hash_at(header.offset)
    if found is None:
        raise UnbelievableCheckpointError(f"no batch of the log ends at offset {header.offset}")
    if found != header.chain_hash:
        raise UnbelievableCheckpointError(
            f"the chain hash at offset {header.offset} is {found.hex()[:16]}… in the log and "
            f"{header.chain_hash.hex()[:16]}… in it: one of them was replaced"
        )


def image_of(loaded: LoadedCheckpoint, *, check: bool) -> MetadataImage:
    """Return a checkpoint's image.

    `check`: it has the state hash that the header tells, and the records are its whole snapshot.
    Raises UnbelievableCheckpointError.
    """
    header = loaded.header
    records = chain.from_iterable(map(decode_records, loaded.blocks))
    try:
        image = image_from_records(
            records, header.offset, header.epoch, header.timestamp_ms, with_state_hash=False
        )
    except (RecordDecodeError, ReplayError, ValueError) as error:
        raise UnbelievableCheckpointError(f"its records can't be replayed: {error}") from error
    if check and hash_from_scratch(image).encode() != header.state_hash:
        raise UnbelievableCheckpointError("its content isn't what its header's state hash says")
    if check and not _is_snapshot_of(image, loaded.blocks):
        raise UnbelievableCheckpointError(
            "its records are not the ones that the snapshot of its image has: some are missing, "
            "too many, or elsewhere"
        )
    return image


def _is_snapshot_of(image: MetadataImage, blocks: Sequence[bytes]) -> bool:
    """Tell whether the records are the image's snapshot, to the byte.

    The state hash can't: it is of the image that loading makes, and loading makes good what follows
    from the other records (the offset that a broker's shutdown waits for, at the snapshot's own).
    """
    records = image_to_records(image)
    for block in blocks:
        count = len(_records_of(block))
        if encode_records(list(islice(records, count))) != block:
            return False
    return next(records, None) is None
