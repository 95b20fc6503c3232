"""Verifies a backup while its parts are read: frames, digest, checkpoint, and the ledger's chain.

Rule: a part is handed on after its own checks, but only the end of the generator says that the
whole backup is sound. So whoever writes parts down must be able to throw them away.
"""

from collections.abc import Callable, Generator
from typing import Final, Protocol

import msgspec

from ledger.batch import Batch
from ledger.chain import LogMark
from ledger.checker import BadSegmentError, SegmentChecker
from ledger.errors import DamagedBatchError, UnknownFormatError
from ledger.segments import LOG_FOLDER, segment_base, segment_name
from logberg.backups.backup_format import (
    FIRST_BYTES,
    BackupError,
    BackupFooter,
    BackupHeader,
    BackupParser,
    FileBegins,
    Part,
    parse_header,
)
from snapshots.checkpoint import FOLDER, CheckpointChecker, CheckpointHeader, CheckpointId
from snapshots.errors import CheckpointError

READ_BYTES: Final = 1024 * 1024
OnBatch = Callable[[Batch, int], None]
"""Called with a batch and the position behind it in its segment."""


class BackupFile(Protocol):
    """A backup that can be read by ranges."""

    @property
    def location(self) -> str:
        """The path or URL, without secrets, for messages."""

    def size(self) -> int:
        """Return the length in bytes. Raises OSError."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes. Raises OSError."""


class BackupFacts(msgspec.Struct, frozen=True):
    """What a whole, sound backup holds."""

    header: BackupHeader
    footer: BackupFooter
    batches: int
    records: int
    """Of the ledger in it."""
    checkpoint: CheckpointHeader | None
    size: int
    """In bytes."""


def read_backup_header(file: BackupFile) -> BackupHeader:
    """Read only the header. Raises BackupError, OSError."""
    data = file.read(0, 4096)
    try:
        try:
            return parse_header(data)[0]
        except DamagedBatchError as error:
            if not error.torn:
                raise
        return parse_header(file.read(0, FIRST_BYTES))[0]
    except DamagedBatchError as error:
        raise _damaged(file, error.position, error.reason) from None
    except UnknownFormatError as error:
        raise _unknown(file, error) from None


def verified_parts(
    file: BackupFile, on_batch: OnBatch | None = None
) -> Generator[Part, None, BackupFacts]:
    """Yield the parts of a backup, and return its facts once all of it is verified.

    Raises BackupError, which names the first bad place, and OSError.
    """
    parser, content, position = BackupParser(), BackupContent(on_batch), 0
    try:
        while data := file.read(position, READ_BYTES):
            position += len(data)
            for part in parser.feed(data):
                content.take(part)
                yield part
        parser.finish()
        return content.finish(position)
    except DamagedBatchError as error:
        raise _damaged(file, error.position, error.reason) from None
    except UnknownFormatError as error:
        raise _unknown(file, error) from None
    except BadContentError as error:
        raise BackupError(f"{file.location} is damaged: {error}. Use another backup") from None


def verify_backup(file: BackupFile, on_progress: Callable[[int, int], None]) -> BackupFacts:
    """Verify a backup from its first byte to its last. Raises BackupError, OSError."""
    size, done = file.size(), 0
    parts = verified_parts(file)
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            facts: BackupFacts = end.value
            return facts
        if isinstance(part, bytes):
            done += len(part)
            on_progress(done, size)


def _damaged(file: BackupFile, position: int, reason: str) -> BackupError:
    return BackupError(
        f"{file.location} is damaged or no backup: at byte {position}, {reason}. Use another backup"
    )


def _unknown(file: BackupFile, error: UnknownFormatError) -> BackupError:
    return BackupError(
        f"{file.location}: this backup is of format {error.format_version}, and this release reads "
        "format 1. Use the release that wrote it, or a newer one"
    )


class BadContentError(Exception):
    """What a backup holds is not what its header says, or is damaged itself."""


class BackupContent:
    """Checks what the parts of a backup hold: one chain, as the header names its ends."""

    def __init__(self, on_batch: OnBatch | None = None) -> None:
        self._on_batch = on_batch
        self._header: BackupHeader | None = None
        self._footer: BackupFooter | None = None
        self._mark: LogMark | None = None
        self._left = 0
        self._name = ""
        self._segment: SegmentChecker | None = None
        self._reading: CheckpointChecker | None = None
        self._checkpoint: CheckpointHeader | None = None
        self._met = False
        self._batches = 0
        self._records = 0

    def take(self, part: Part) -> None:
        """Check the next part. Raises BadContentError, UnknownFormatError."""
        if isinstance(part, BackupHeader):
            self._header, self._mark = part, part.start
            self._check_checkpoint_name(part.checkpoint)
        elif isinstance(part, FileBegins):
            self._begin(part)
        elif isinstance(part, BackupFooter):
            self._footer = part
        else:
            self._feed(part)

    def finish(self, size: int) -> BackupFacts:
        """Return the facts. Raises BadContentError."""
        header, footer = self._header, self._footer
        assert header is not None
        assert footer is not None
        if self._mark != header.end:
            raise BadContentError("its ledger doesn't end at the mark that its header names")
        if header.checkpoint and not self._met:
            raise BadContentError("its ledger has no batch that ends at its checkpoint")
        return BackupFacts(header, footer, self._batches, self._records, self._checkpoint, size)

    def _begin(self, file: FileBegins) -> None:
        header = self._header
        assert header is not None
        self._left, self._name = file.size, file.name
        if file.name == f"{FOLDER}/{header.checkpoint}" and self._checkpoint is None:
            self._reading = CheckpointChecker()
            return
        mark = self._mark
        assert mark is not None
        if file.name != f"{LOG_FOLDER}/{segment_name(mark.log_end)}":
            raise BadContentError(f"the file {file.name[:80]!r} doesn't belong here")
        if header.checkpoint and self._checkpoint is None:
            raise BadContentError(f"the checkpoint {header.checkpoint[:80]!r} is missing")
        known = self._known()
        self._segment = SegmentChecker(
            header.cluster_id, mark.log_end, mark, known=known, on_batch=self._on_batch
        )

    def _check_checkpoint_name(self, name: str) -> None:
        """Refuse a name that could lie outside of a node's folder. Raises BadContentError."""
        try:
            if name:
                CheckpointId.parse(name)
        except CheckpointError:
            raise BadContentError(f"{name[:80]!r} is no name of a checkpoint") from None

    def _known(self) -> dict[int, bytes]:
        one = self._checkpoint
        return {} if one is None else {one.offset: one.chain_hash}

    def _feed(self, data: bytes) -> None:
        self._left -= len(data)
        try:
            if self._segment is not None:
                self._segment.feed(data)
            else:
                assert self._reading is not None
                self._reading.feed(data)
            if self._left == 0:
                self._end()
        except BadSegmentError as error:
            raise BadContentError(f"{self._name}, {error}") from None
        except DamagedBatchError as error:
            raise BadContentError(f"{self._name}, byte {error.position}: {error.reason}") from None

    def _end(self) -> None:
        if self._segment is None:
            self._end_checkpoint()
            return
        segment, self._segment = self._segment, None
        segment.finish()
        if not segment.batches:
            raise BadContentError(f"{self._name} has no batch")
        self._mark = segment.mark
        self._batches += segment.batches
        self._records += segment.records
        self._met = self._met or bool(segment.met)

    def _end_checkpoint(self) -> None:
        header, reading = self._header, self._reading
        assert header is not None
        assert reading is not None
        found, self._reading = reading.finish(), None
        name = self._name.removeprefix(f"{FOLDER}/")
        try:
            right = CheckpointId.parse(name) == found.id
        except CheckpointError:
            right = False
        if found.cluster_id != header.cluster_id or not right:
            raise BadContentError(f"{self._name} is another checkpoint")
        if not header.start.log_end <= found.offset <= header.end.log_end:
            raise BadContentError(f"{self._name} lies outside of its ledger")
        self._checkpoint = found
        if found.offset == header.start.log_end:
            # No batch in this backup ends there.
            self._met = header.start.head == found.chain_hash


def segment_of(name: str) -> int | None:
    """Return the base offset if a file in a backup is a segment."""
    return segment_base(name.removeprefix(f"{LOG_FOLDER}/"))
