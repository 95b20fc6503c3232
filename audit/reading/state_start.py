"""Where a replay may begin: the nearest trustworthy checkpoint at or below an offset.

Rule: a checkpoint is trusted if all its bytes are right and its chain hash is the log's at its
offset. If the caller wants a state hash, the checkpoint's content must also have the state hash of
its header and be the whole snapshot of that state. If a checkpoint fails, a note says so, and the
one before it is tried. Only a replay proves that the content is what the log gives
(`audit.questions.verification`).
"""

from itertools import islice

import msgspec

from audit.places.folder import NoLogError
from audit.reading.readable_log import ReadableLog
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, encode_records
from metadata.image import (
    EMPTY,
    MetadataImage,
    ReplayError,
    image_from_records,
    image_to_records,
)
from metadata.image.metadata_image import hash_from_scratch
from metadata.steps import finished
from runtime.disk.interface import Disk
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointError, CheckpointNotFoundError
from snapshots.store import LoadedCheckpoint, list_checkpoints, load_steps

_records_of = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Start(msgspec.Struct, frozen=True):
    """An image to begin from, and the mark after it."""

    image: MetadataImage
    mark: LogMark
    checkpoint: CheckpointId | None = None
    notes: tuple[str, ...] = ()
    """What was wrong with nearer checkpoints."""


class UnbelievableCheckpointError(Exception):
    """Why a checkpoint can't be trusted: a sentence without the checkpoint's name."""


def start_for(
    disk: Disk,
    reader: ReadableLog,
    end: int,
    *,
    check_content: bool = True,
    snapshots: bool = True,
) -> Start:
    """Return where to begin for the state at `end`.

    Without `snapshots`, begin at offset 0 if the history is here. Raises NoLogError, LedgerError,
    OSError.
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
                continue  # the node removed it after it was listed
            except UnbelievableCheckpointError as error:
                notes.append(f"{FOLDER}/{checkpoint.name} is not used: {error}")
                continue
            return Start(image, loaded.header.mark, checkpoint, tuple(notes))
    if reader.log_start:
        raise NoLogError(
            f"history begins at offset {reader.log_start}, and there is no snapshot between there "
            f"and {end} to begin from. Use a controller that has the history."
            + "".join(f" {note}." for note in notes)
        )
    return Start(EMPTY, LogMark.beginning(reader.cluster_id), None, tuple(notes))


def load(disk: Disk, cluster_id: str | None, checkpoint: CheckpointId) -> LoadedCheckpoint:
    """Load and verify a checkpoint's bytes.

    Raises UnbelievableCheckpointError, CheckpointNotFoundError.
    """
    try:
        return finished(load_steps(disk, cluster_id, checkpoint))
    except (CheckpointNotFoundError, FileNotFoundError) as error:
        raise CheckpointNotFoundError(str(error)) from None
    except (CheckpointError, LedgerError, OSError) as error:
        raise UnbelievableCheckpointError(str(error)) from None


def hold_against_log(loaded: LoadedCheckpoint, reader: ReadableLog) -> None:
    """Compare a checkpoint's chain hash with the log's. Raises UnbelievableCheckpointError."""
    header = loaded.header
    found = reader.hash_at(header.offset)
    if found is None:
        raise UnbelievableCheckpointError(f"no batch of the log ends at offset {header.offset}")
    if found != header.chain_hash:
        raise UnbelievableCheckpointError(
            f"the chain hash at offset {header.offset} is {found.hex()[:16]}… in the log and "
            f"{header.chain_hash.hex()[:16]}… in the checkpoint: one of them was replaced"
        )


def image_of(loaded: LoadedCheckpoint, *, check: bool) -> MetadataImage:
    """Return a checkpoint's image.

    `check`: also check the state hash in the header, and that the records are the whole snapshot.
    Raises UnbelievableCheckpointError.
    """
    header = loaded.header
    try:
        image = image_from_records(
            loaded.records(),
            header.offset,
            header.epoch,
            header.timestamp_ms,
            with_state_hash=False,
        )
    except (RecordDecodeError, ReplayError, ValueError) as error:
        raise UnbelievableCheckpointError(f"its records can't be replayed: {error}") from error
    if check and hash_from_scratch(image).encode() != header.state_hash:
        raise UnbelievableCheckpointError("its content doesn't have the state hash in its header")
    if check and not _is_snapshot_of(image, loaded):
        raise UnbelievableCheckpointError(
            "its records are not the snapshot of its image: some are missing, too many, or in the "
            "wrong place"
        )
    return image


def _is_snapshot_of(image: MetadataImage, loaded: LoadedCheckpoint) -> bool:
    """Return whether the records are the image's snapshot, to the byte.

    The state hash alone can't show that. It is computed from the loaded image, and loading fills in
    values that follow from other records, such as the offset that a broker's shutdown waits for.
    """
    records = image_to_records(image)
    for block in loaded.arrays():
        count = len(_records_of(block))
        if encode_records(list(islice(records, count))) != block:
            return False
    return next(records, None) is None
