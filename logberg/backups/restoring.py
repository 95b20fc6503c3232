"""Restores a backup: writes the folders of all voters of a new generation of the cluster.

Rule: the folders are filled while the backup is verified, and count only when everything is done:
the caller makes them beside their places and moves them there at the end. Until then nothing that
was there before is touched.

A log that is restored to a moment ends with the last whole batch before it. A transaction that is
open there is discarded, as by a new leader.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ledger.batch import Batch, BatchHeader
from ledger.chain import LogMark
from ledger.segments import LOG_FOLDER, SegmentHeader, must_roll, segment_name
from logberg.backups.backup_format import BackupError, BackupHeader, FileBegins, Part
from logberg.backups.generation import KnownGeneration, generation_batch
from logberg.backups.reading import BackupFacts, BackupFile, segment_of, verified_parts
from quorum.api import ClusterGeneration, Mark, Voter
from quorum.recovery.generation import GenerationStart, begin_generation
from runtime.disk.interface import AppendFile, Disk
from snapshots.checkpoint import FOLDER

_FIRST_INDEX: Final = 2
"""Of the quorum's entries: a journal begins with two."""


class CutPoint(msgspec.Struct, frozen=True):
    """Where the restored log ends: behind the last batch for which both hold."""

    offset: int | None = None
    """It begins before this offset. So an offset inside a batch means the batch's end."""
    time_ms: int | None = None
    """It was written at or before this time."""

    def includes(self, header: BatchHeader) -> bool:
        """Return whether a batch is restored."""
        return (self.offset is None or header.base_offset < self.offset) and (
            self.time_ms is None or header.timestamp_ms <= self.time_ms
        )


class RestoreOrder(msgspec.Struct, frozen=True):
    """Who restores, why, and for which voters."""

    voters: tuple[Voter, ...]
    """With directory ids that were drawn for this restore."""
    principal: str
    reason: str
    now_ms: int
    generation_id: bytes
    """16 bytes that were drawn for this restore."""


class Restored(msgspec.Struct, frozen=True):
    """What was restored."""

    facts: BackupFacts
    kept: LogMark
    """Where the backup's ledger was cut."""
    end: LogMark
    """The end of the restored log, behind the batch that begins the generation."""
    generation: int
    checkpoint: bool
    """The folders hold the backup's checkpoint."""


def restore_backup(
    file: BackupFile,
    disks: Mapping[int, Disk],
    new: RestoreOrder,
    *,
    cluster_id: str,
    segment_bytes: int,
    moment: CutPoint,
    on_progress: Callable[[int, int], None],
) -> Restored:
    """Write a folder for each voter, on the empty disk of its node id.

    On an error the disks hold a part of the backup. Raises BackupError, OSError.
    """
    restoring = _Restoring(file, list(disks.values()), cluster_id, segment_bytes, moment)
    facts = restoring.fill(on_progress)
    kept, end, generation = restoring.finish(facts, new)
    start = GenerationStart(
        cluster_id,
        ClusterGeneration(generation, new.generation_id),
        tuple(sorted(new.voters, key=lambda voter: voter.node_id)),
        end.epoch,
        Mark(_FIRST_INDEX, end.epoch, end.encode()),
        (),
    )
    for node_id, disk in disks.items():
        begin_generation(disk, start, node_id, keep=f"before-generation-{generation}")
    return Restored(facts, kept, end, generation, restoring.has_checkpoint)


class _Restoring:
    """The files of all folders on their way."""

    def __init__(
        self,
        file: BackupFile,
        disks: Sequence[Disk],
        cluster_id: str,
        segment_bytes: int,
        moment: CutPoint,
    ) -> None:
        self._file = file
        self._disks = disks
        self._cluster_id = cluster_id
        self._segment_bytes = segment_bytes
        self._moment = moment
        self._known = KnownGeneration()
        self._kept: LogMark | None = None
        self._cut = ("", 0)
        """The segment and the position in it where the restored ledger ends."""
        self._over = False
        self._name = ""
        self._open: list[AppendFile] = []
        self._segments: list[str] = []
        self._checkpoint = ""
        self.has_checkpoint = False

    def fill(self, on_progress: Callable[[int, int], None]) -> BackupFacts:
        """Write the backup's files while they are verified. Raises BackupError, OSError."""
        for disk in self._disks:
            disk.make_folder(LOG_FOLDER)
            disk.make_folder(FOLDER)
        size, done = self._file.size(), 0
        parts = verified_parts(self._file, self._on_batch)
        try:
            while True:
                try:
                    part = next(parts)
                except StopIteration as end:
                    facts: BackupFacts = end.value
                    return facts
                self._take(part)
                if isinstance(part, bytes):
                    done += len(part)
                    on_progress(done, size)
        finally:
            self._close()

    def finish(self, facts: BackupFacts, new: RestoreOrder) -> tuple[LogMark, LogMark, int]:
        """Cut the log at its moment, and begin the generation.

        Returns where the log was cut, its end now, and the generation. Raises BackupError, OSError.
        """
        kept = self._kept
        if kept is None:
            raise BackupError(self._nothing_before(facts))
        self._drop_behind()
        self._judge_checkpoint(facts, kept)
        batch = generation_batch(
            kept,
            self._known,
            new.voters,
            principal=new.principal,
            reason=new.reason,
            now_ms=new.now_ms,
            generation_id=new.generation_id,
        )
        self._append(kept, batch)
        for disk in self._disks:
            disk.sync_folder(LOG_FOLDER)
            disk.sync_folder(FOLDER)
        return kept, kept.after(batch), max(self._known.number, 1) + 1

    def _take(self, part: Part) -> None:
        if isinstance(part, BackupHeader):
            if part.cluster_id != self._cluster_id:
                raise BackupError(
                    f"{self._file.location} is a backup of cluster {part.cluster_id}, and the "
                    f"settings name cluster {self._cluster_id}: correct cluster_id, or use a "
                    "backup of that cluster"
                )
            self._check_moment(part)
        elif isinstance(part, FileBegins):
            self._begin(part.name)
        elif isinstance(part, bytes):
            for open_file in self._open:
                open_file.append(part)

    def _check_moment(self, header: BackupHeader) -> None:
        end = header.end.log_end
        if self._moment.offset is not None and self._moment.offset > end:
            raise BackupError(
                f"offset {self._moment.offset} is not in {self._file.location}: its log ends at "
                f"{end}"
            )

    def _begin(self, name: str) -> None:
        self._close()
        self._name = name
        if segment_of(name) is None:
            self._checkpoint = name
        else:
            self._segments.append(name)
        for disk in self._disks:
            self._open.append(disk.open(name))

    def _close(self) -> None:
        """End the present files. What is complete is made durable."""
        files, self._open = self._open, []
        for open_file in files:
            open_file.sync()
            open_file.close()

    def _on_batch(self, batch: Batch, position: int) -> None:
        header = batch.header
        self._over = self._over or not self._moment.includes(header)
        if self._over:
            return
        self._known.take(batch)
        self._kept = LogMark(header.end_offset, batch.hash, header.epoch, header.timestamp_ms)
        # The frame that begins a segment was handed on before the segment's first piece is checked.
        self._cut = (self._name, position)

    def _nothing_before(self, facts: BackupFacts) -> str:
        start = facts.header.start.log_end
        return (
            f"{self._file.location} holds the records from offset {start} on, and no whole batch "
            "of them ends before that moment: name a later one"
        )

    def _drop_behind(self) -> None:
        name, position = self._cut
        at = self._segments.index(name)
        for disk in self._disks:
            for later in reversed(self._segments[at + 1 :]):
                disk.unlink(later)
            open_file = disk.open(name)
            if open_file.size() > position:
                open_file.truncate(position)
                open_file.sync()
            open_file.close()

    def _judge_checkpoint(self, facts: BackupFacts, kept: LogMark) -> None:
        checkpoint = facts.checkpoint
        if checkpoint is None:
            return
        self.has_checkpoint = checkpoint.offset <= kept.log_end
        if self.has_checkpoint:
            self._known.take_checkpoint(checkpoint.generation, checkpoint.voters)
            return
        if facts.header.start.log_end:
            raise BackupError(
                f"{self._file.location} holds no state before offset {checkpoint.offset}: name a "
                "later moment, or use a backup that begins at offset 0"
            )
        for disk in self._disks:
            disk.unlink(self._checkpoint)

    def _append(self, kept: LogMark, batch: Batch) -> None:
        name, position = self._cut
        header = SegmentHeader(self._cluster_id, kept).encode()
        rolls = must_roll(position, len(header), len(batch.encoded), self._segment_bytes)
        for disk in self._disks:
            file = disk.open(f"{LOG_FOLDER}/{segment_name(kept.log_end)}" if rolls else name)
            file.append(header + batch.encoded if rolls else batch.encoded)
            file.sync()
            file.close()
