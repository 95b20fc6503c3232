"""The checkpoints of one node: written, listed, loaded, served in ranges, thinned out.

Rule: a loaded checkpoint was verified from its first byte to its last. If the newest is damaged, it
is reported and put aside, and the one before it is loaded.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ledger.checker import PIECE_BYTES
from ledger.errors import DamagedBatchError
from ledger.frame import FORMAT
from metadata.codec import encode_records
from metadata.image import MetadataImage
from metadata.records import Record
from runtime.clock import Clock
from runtime.disk.interface import Disk
from snapshots.checkpoint import (
    FOLDER,
    FRAME_BYTES_MAX,
    Block,
    CheckpointChecker,
    CheckpointHeader,
    CheckpointId,
    parse_header,
)
from snapshots.contents import parts_of, records_of
from snapshots.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    DamagedCheckpointError,
    PositionOutOfRangeError,
)
from snapshots.packing import Packed, image_frames, record_frames
from snapshots.topic_block import TopicBlock
from snapshots.writing import CheckpointWriting, OnWritten

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger

CHECKPOINT_WRITTEN = "checkpoint_written"
CHECKPOINT_FAILED = "checkpoint_failed"
CHECKPOINT_REMOVED = "checkpoint_removed"
CHECKPOINT_DISTRUSTED = "checkpoint_distrusted"

KEEP_NEWEST = 3
KEEP_EVERY = 250_000
"""Records. At least one checkpoint is kept for each so many."""
DAMAGED = ".damaged"


class LoadedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint whose bytes are verified."""

    header: CheckpointHeader
    blocks: tuple[Block, ...]
    size: int
    """Bytes of the file."""

    def records(self) -> Iterator[Record]:
        """Decode the records, in order; all are whole records, whatever the format.

        Raises RecordDecodeError, UnknownRecordError when it comes to one that can't be decoded.
        """
        return records_of(self.blocks, self.header.format)

    def arrays(self) -> Iterator[bytes]:
        """Yield the records as MessagePack arrays, the content of blocks of format 1.

        Raises as `records`.
        """
        for part in parts_of(self.blocks, self.header.format):
            yield encode_records(list(part.records()) if isinstance(part, TopicBlock) else part)


class CheckpointStore:
    """The folder `checkpoints/`. Opening it removes what a crash left."""

    def __init__(self, disk: Disk, cluster_id: str, clock: Clock, log: "BoundLogger") -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._clock = clock
        self._log = log
        self._writing: CheckpointWriting | None = None
        disk.make_folder(FOLDER)
        for name in disk.list(FOLDER):
            if name.endswith(".part"):
                disk.unlink(f"{FOLDER}/{name}")

    def list(self) -> list[CheckpointId]:
        """Return the checkpoints here, oldest first."""
        return list_checkpoints(self._disk)

    def newest(self, at_most: int | None = None) -> CheckpointId | None:
        """Return the newest checkpoint; with `at_most`, the newest whose offset is not above it."""
        found = [one for one in self.list() if at_most is None or one.offset <= at_most]
        return found[-1] if found else None

    def size(self, checkpoint: CheckpointId) -> int:
        """Return the bytes of a checkpoint's file. Raises CheckpointNotFoundError."""
        try:
            return self._disk.size(f"{FOLDER}/{checkpoint.name}")
        except FileNotFoundError:
            raise _not_found(checkpoint) from None

    def header(self, checkpoint: CheckpointId) -> CheckpointHeader:
        """Read only the header. Raises CheckpointNotFoundError, DamagedCheckpointError."""
        name = f"{FOLDER}/{checkpoint.name}"
        try:
            header, _ = parse_header(self._disk.read(name, 0, FRAME_BYTES_MAX))
        except FileNotFoundError:
            raise _not_found(checkpoint) from None
        except DamagedBatchError as error:
            raise DamagedCheckpointError(name, error.position, error.reason) from None
        check_header(name, header, self._cluster_id, checkpoint)
        return header

    @property
    def writing(self) -> bool:
        """A checkpoint is being written."""
        return self._writing is not None

    def write_image(
        self,
        header: CheckpointHeader,
        image: MetadataImage,
        on_done: OnWritten,
        *,
        for_brokers: bool = False,
    ) -> CheckpointWriting:
        """Do what `write` does with the records of an image, in the format of the header.

        `for_brokers` leaves out the records that only controllers hold.
        """
        return self._write(header, image_frames(image, header.format, for_brokers), on_done)

    def write(
        self, header: CheckpointHeader, records: Iterable[bytes], on_done: OnWritten
    ) -> CheckpointWriting:
        """Write encoded records in format 1, in slices.

        Calls `on_done(id, None)` when the checkpoint is durable. Calls `on_done(None, error)` if
        the disk refused. Then the disk is as before; the node may continue (full disk) or stop (any
        other error). Raises CheckpointError while another checkpoint is being written.
        """
        if header.format != FORMAT:
            raise CheckpointError(f"records are written in format 1, not {header.format}")
        return self._write(header, record_frames(records), on_done)

    def _write(
        self, header: CheckpointHeader, frames: Iterator[Packed | None], on_done: OnWritten
    ) -> CheckpointWriting:
        if self._writing is not None:
            raise CheckpointError("a checkpoint is being written already")
        if header.cluster_id != self._cluster_id:
            raise CheckpointError(f"the image is of cluster {header.cluster_id!r}")

        def done(written: CheckpointId | None, error: OSError | None) -> None:
            self._writing = None
            if error is None:
                self._log.info(CHECKPOINT_WRITTEN, checkpoint=str(written), bytes=writing.size)
            else:
                self._log.error(CHECKPOINT_FAILED, checkpoint=str(header.id), error=str(error))
            on_done(written, error)

        writing = CheckpointWriting(self._disk, self._clock, header, frames, done)
        self._writing = writing
        return writing

    def pause(self) -> None:
        """Pack no further block of the checkpoint that is being written, until `resume`."""
        if self._writing is not None:
            self._writing.pause()

    def resume(self) -> None:
        """Go on with the checkpoint that is being written."""
        if self._writing is not None:
            self._writing.resume()

    def cancel(self) -> None:
        """Give up the checkpoint that is being written. Nothing is called back."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def put_aside(self, checkpoint: CheckpointId) -> None:
        """Rename a checkpoint that must not be loaded; it stays as evidence. Blocks for a sync.

        Raises OSError.
        """
        name = f"{FOLDER}/{checkpoint.name}"
        self._disk.rename(name, name + DAMAGED)
        self._disk.sync_folder(FOLDER)

    def distrust_from(self, offset: int) -> None:
        """Put aside the checkpoints from an offset on.

        Their bytes are whole, but the image was wrong.
        """
        for checkpoint in self.list():
            if checkpoint.offset >= offset:
                self._log.error(CHECKPOINT_DISTRUSTED, checkpoint=str(checkpoint))
                self.put_aside(checkpoint)

    def read_range(self, checkpoint: CheckpointId, position: int, length: int) -> tuple[int, bytes]:
        """Return the file's size and up to `length` bytes from `position`.

        Raises CheckpointNotFoundError, PositionOutOfRangeError.
        """
        size = self.size(checkpoint)
        if not 0 <= position <= size:
            raise PositionOutOfRangeError(
                f"checkpoint {checkpoint} has {size} bytes, there is no byte {position}"
            )
        return size, self._disk.read(f"{FOLDER}/{checkpoint.name}", position, max(length, 0))

    def thin_out(self, keep_newest: int = KEEP_NEWEST, keep_every: int = KEEP_EVERY) -> None:
        """Remove checkpoints, but keep the newest and enough others for `keep_every`."""
        removed = superfluous(self.list(), keep_newest, keep_every)
        for checkpoint in removed:
            self._disk.unlink(f"{FOLDER}/{checkpoint.name}")
            self._log.info(CHECKPOINT_REMOVED, checkpoint=str(checkpoint))


def list_checkpoints(disk: Disk) -> list[CheckpointId]:
    """Return the checkpoints in a node's folder, oldest first."""
    found: list[CheckpointId] = []
    for name in disk.list(FOLDER):
        try:
            found.append(CheckpointId.parse(name))
        except CheckpointError:
            continue
    return sorted(found)


def load_steps(
    disk: Disk, cluster_id: str | None, checkpoint: CheckpointId, *, keep_blocks: bool = True
) -> Generator[tuple[int, int], None, LoadedCheckpoint]:
    """Load and verify in steps of a few milliseconds; yields (bytes done, bytes in all).

    Without `keep_blocks` it only verifies the bytes, and the result has no blocks.
    """
    name = f"{FOLDER}/{checkpoint.name}"
    try:
        size = disk.size(name)
    except FileNotFoundError:
        raise _not_found(checkpoint) from None
    checker = CheckpointChecker()
    blocks: list[Block] = []
    position = 0
    try:
        while piece := disk.read(name, position, PIECE_BYTES):
            found = checker.feed(piece)
            blocks += found if keep_blocks else ()
            position += len(piece)
            yield position, size
        header = checker.finish()
    except DamagedBatchError as error:
        raise DamagedCheckpointError(name, error.position, error.reason) from None
    check_header(name, header, cluster_id, checkpoint)
    return LoadedCheckpoint(header, tuple(blocks), position)


def without_progress(
    steps: Generator[tuple[int, int], None, LoadedCheckpoint],
) -> Generator[None, None, LoadedCheckpoint]:
    """Pause where `load_steps` does, for a caller that does not show how far it has come."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            loaded: LoadedCheckpoint = stop.value
            return loaded
        yield


def check_header(
    name: str, header: CheckpointHeader, cluster_id: str | None, checkpoint: CheckpointId
) -> None:
    """Raise DamagedCheckpointError if a file's content doesn't match its name and place."""
    if cluster_id is not None and header.cluster_id != cluster_id:
        raise DamagedCheckpointError(
            name, 0, f"it belongs to cluster {header.cluster_id!r}, this is {cluster_id!r}"
        )
    if header.id != checkpoint:
        raise DamagedCheckpointError(name, 0, f"it is the content of checkpoint {header.id}")


def superfluous(
    checkpoints: list[CheckpointId], keep_newest: int, keep_every: int
) -> list[CheckpointId]:
    """Return the checkpoints that may be removed.

    The newest `keep_newest` stay. Of the older ones, between two kept ones lie at most `keep_every`
    records, as far as the checkpoints allow.
    """
    older = checkpoints[: max(len(checkpoints) - keep_newest, 0)]
    kept_offset = 0
    removed: list[CheckpointId] = []
    for i, checkpoint in enumerate(older):
        after = checkpoints[i + 1].offset if i + 1 < len(checkpoints) else checkpoint.offset
        if after - kept_offset > keep_every:
            kept_offset = checkpoint.offset
        else:
            removed.append(checkpoint)
    return removed


def _not_found(checkpoint: CheckpointId) -> CheckpointNotFoundError:
    return CheckpointNotFoundError(
        f"checkpoint {checkpoint} is not here any more. Ask again which one to load"
    )
