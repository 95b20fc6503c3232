"""Makes a backup: reads a source once, verifies what passes, and writes one file.

Rule: a backup that can't be verified is not made. The ledger's chain is checked from the
first byte to the mark where the source ends, and the checkpoint against the chain.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Protocol

import msgspec

from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, LedgerError, UnknownFormatError
from ledger.segments import HEADER_BYTES_MAX, LOG_FOLDER, parse_segment_header, segment_name
from logberg.backups.backup_format import (
    PIECE_BYTES,
    BackupEncoder,
    BackupError,
    BackupHeader,
    FileBegins,
    Part,
)
from logberg.backups.reading import BackupContent, BackupFacts, BadContentError
from logberg.backups.sources import BackupSource
from snapshots.checkpoint import FOLDER, CheckpointId

OnProgress = Callable[[int, int], None]
Steps = Generator[tuple[int, int], None, BackupFacts]


class BackupSink(Protocol):
    """A file that grows, and appears under its name when all of it is there."""

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""


class SourceDamagedError(BackupError):
    """The source's bytes are not sound. Another controller may have better ones."""


class WantedBackup(msgspec.Struct, frozen=True):
    """What a backup shall hold, and what its header says of its making."""

    made_at_ms: int
    release: str
    from_offset: int = 0
    """The ledger begins with the segment that holds this offset."""


def make_backup(
    source: BackupSource, sink: BackupSink, wanted: WantedBackup, on_progress: OnProgress
) -> BackupFacts:
    """Write a backup of a source. Raises SourceDamagedError, BackupError, OSError."""
    steps = backup_steps(source, sink, wanted)
    while True:
        try:
            on_progress(*next(steps))
        except StopIteration as end:
            facts: BackupFacts = end.value
            return facts


def backup_steps(source: BackupSource, sink: BackupSink, wanted: WantedBackup) -> Steps:
    """Write a backup in steps of one piece; yields (bytes done, bytes in all).

    Raises as `make_backup` does.
    """
    try:
        return (yield from _Making(source, sink, wanted).steps())
    except (BadContentError, DamagedBatchError, UnknownFormatError, LedgerError) as error:
        raise SourceDamagedError(
            f"{source.location} can't be backed up, because what it holds is damaged: {error}. "
            "Back up another controller"
        ) from None


class _Making:
    """One backup on its way."""

    def __init__(self, source: BackupSource, sink: BackupSink, wanted: WantedBackup) -> None:
        self._source = source
        self._sink = sink
        self._encoder = BackupEncoder()
        self._content = BackupContent()
        self._segments = _from_offset(source, wanted.from_offset)
        start = self._begin_of(self._segments[0][0])
        self._checkpoint = _newest(source, start)
        if start.log_end and self._checkpoint is None and not wanted.from_offset:
            raise BackupError(
                f"{source.location} has its history from offset {start.log_end} on, and no "
                "checkpoint: back up another controller"
            )
        self._header = BackupHeader(
            source.cluster_id,
            wanted.made_at_ms,
            wanted.release,
            source.location,
            start,
            source.end,
            "" if self._checkpoint is None else self._checkpoint[0].name,
            source.voters,
        )
        self._done = self._written = 0
        self._total = sum(size for _, size in self._segments)
        self._total += 0 if self._checkpoint is None else self._checkpoint[1]

    def steps(self) -> Steps:
        """Write it; yields (bytes done, bytes in all)."""
        self._put(self._encoder.header(self._header), self._header)
        if self._checkpoint is not None:
            checkpoint, size = self._checkpoint
            yield from self._file(
                f"{FOLDER}/{checkpoint.name}",
                size,
                partial(self._source.read_checkpoint, checkpoint),
            )
        for base, size in self._segments:
            yield from self._file(
                f"{LOG_FOLDER}/{segment_name(base)}",
                size,
                partial(self._source.read_segment, base),
            )
        footer, frame = self._encoder.footer()
        self._put(frame, footer)
        return self._content.finish(self._written)

    def _file(
        self, name: str, size: int, read: Callable[[int, int], bytes]
    ) -> Generator[tuple[int, int], None, None]:
        self._put(self._encoder.file(name, size), FileBegins(name, size))
        position, gathered = 0, b""
        while position < size:
            wanted = min(PIECE_BYTES, size - position)
            gathered += read(position + len(gathered), wanted - len(gathered))
            if len(gathered) < wanted:
                continue
            self._put(self._encoder.piece(gathered), gathered)
            position += wanted
            self._done += wanted
            gathered = b""
            yield self._done, self._total

    def _put(self, frame: bytes, part: Part) -> None:
        self._content.take(part)
        self._sink.write(frame)
        self._written += len(frame)

    def _begin_of(self, base: int) -> LogMark:
        """Return the mark that a segment continues. Its own checks come when it is read."""
        if base == 0:
            return LogMark.beginning(self._source.cluster_id)
        data = self._source.read_segment(base, 0, HEADER_BYTES_MAX)
        return parse_segment_header(data)[0].previous


def _from_offset(source: BackupSource, offset: int) -> list[tuple[int, int]]:
    """Return the segments from the one that holds an offset. Raises BackupError."""
    segments = list(source.segments)
    if offset >= source.end.log_end:
        raise BackupError(
            f"{source.location} ends at offset {source.end.log_end}: there is nothing to back up "
            f"from offset {offset} on"
        )
    if offset and offset < segments[0][0]:
        raise BackupError(
            f"{source.location} has its history from offset {segments[0][0]} on, not from {offset}"
        )
    first = max((n for n, (base, _) in enumerate(segments) if base <= offset), default=0)
    return segments[first:]


def _newest(source: BackupSource, start: LogMark) -> tuple[CheckpointId, int] | None:
    """Return the newest checkpoint that lies in the ledger that is taken."""
    within = (
        each for each in source.checkpoints if start.log_end <= each[0].offset <= source.end.log_end
    )
    return max(within, default=None)
