"""Writes segments: appends frames, begins new segments, unlinks old ones, syncs in groups.

Rule: a frame is buffered until `flush`, and nothing waits for the disk on the loop. One group sync
runs at a time. It covers every segment written to since the last one, and the folder if that has a
new name. So no frame counts as durable before the segments that lead to it.

The first error is final: nothing is written or synced after it, because the kernel may have dropped
the data that it failed to write. `on_failed` is called once.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from quorum.journal.frames import HEADER_BYTES, JournalFrameKind, encode_header
from quorum.journal.identity import FOLDER, JournalIdentity, encode_opening, segment_name
from quorum.journal.synced_notes import SyncedNotes
from runtime.disk.errors import explain
from runtime.disk.interface import AppendFile, Disk

BUFFER_BYTES_MAX = 1024 * 1024


class JournalSegment(NamedTuple):
    """A segment that is part of the journal."""

    name: str
    sequence: int
    base: int
    top_index: int
    """The highest index of an entry in it; 0: it holds none."""


class SegmentWriter:
    """Appends to the last segment of the journal."""

    def __init__(
        self,
        disk: Disk,
        identity: JournalIdentity,
        segments: list[JournalSegment],
        written_position: int,
        segment_bytes: int,
        state_body: Callable[[], bytes],
        on_durable: Callable[[], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        self.written_position = written_position
        self.durable_position = written_position
        self.carried_position = 0
        """The synced position that the newest frame carries."""
        self.top_index = segments[-1].top_index
        self.failure: OSError | None = None
        self._disk = disk
        self._identity = identity
        self._closed_segments = segments[:-1]
        self._active = segments[-1]
        self._segment_bytes = segment_bytes
        self._state_body = state_body
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._seed = identity.seed(self._active.sequence)
        self._file = disk.open(self._active.name)
        self._file_bytes = self._file.size()
        self._synced_notes = SyncedNotes(disk, identity, written_position)
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._unsynced: list[AppendFile] = []
        self._new_name = False
        self._in_flight: list[AppendFile] = []
        self._outstanding = 0
        self._target = 0
        self._wanted = 0
        self._retire_below = 0
        self._retire_at = 0
        self._closed = False

    @property
    def size_bytes(self) -> int:
        """Bytes from the oldest segment's first frame to the end."""
        first = self._closed_segments[0] if self._closed_segments else self._active
        return self.written_position - first.base

    @property
    def names(self) -> list[str]:
        """The segments, oldest first."""
        return [segment.name for segment in (*self._closed_segments, self._active)]

    def closed(self) -> list[tuple[JournalSegment, int]]:
        """Return the closed segments, each with the position where the next one begins."""
        bases = [segment.base for segment in (*self._closed_segments, self._active)]
        return list(zip(self._closed_segments, bases[1:], strict=True))

    def append(self, kind: int, body: bytes) -> int:
        """Buffer a frame; return the position behind it."""
        position = self.written_position
        durable = self.durable_position
        self._buffer.append(encode_header(kind, position, durable, body, self._seed))
        self._buffer.append(body)
        size = HEADER_BYTES + len(body)
        self.carried_position = durable
        self.written_position = end = position + size
        self._buffered += size
        if self._buffered > BUFFER_BYTES_MAX:
            self.flush()
        return end

    def flush(self) -> None:
        """Write what is buffered to the file; begin a new segment when this one is full."""
        if not self._buffer or self.failure is not None or self._closed:
            return
        self._write_buffer()
        if self._file_bytes >= self._segment_bytes and self.failure is None:
            self._roll()

    def _write_buffer(self) -> bool:
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        try:
            self._file.append(data)
        except OSError as error:
            self._fail(error, f"writing {self._active.name}")
            return False
        self._file_bytes += len(data)
        return True

    def _roll(self) -> None:
        sequence = self._active.sequence + 1
        name = segment_name(sequence)
        opening = encode_opening(
            self._identity, sequence, self.written_position, self.durable_position, fresh=False
        )
        try:
            file = self._disk.open(name)
            file.append(opening)
        except OSError as error:
            self._fail(error, f"creating {name}")
            return
        self._unsynced.append(self._file)
        self._new_name = True
        self._closed_segments.append(self._active._replace(top_index=self.top_index))
        self._active = JournalSegment(name, sequence, self.written_position, 0)
        self.top_index = 0
        self._seed = self._identity.seed(sequence)
        self._file, self._file_bytes = file, len(opening)
        self.append(JournalFrameKind.STATE, self._state_body())
        self._write_buffer()

    # -- durability --------------------------------------------------------------------------

    def sync(self, upto: int) -> None:
        """Make everything that was appended durable, at least up to `upto`.

        If a sync is under way that does not cover `upto`, another one follows it.
        """
        if self.failure is not None or self._closed or upto <= self.durable_position:
            return
        if self._outstanding:
            self._wanted = max(self._wanted, upto)
            return
        self.flush()
        if self.failure is None:
            self._start_sync()

    def _start_sync(self) -> None:
        self._target = self.written_position
        self._in_flight, self._unsynced = self._unsynced, []
        new_name, self._new_name = self._new_name, False
        self._outstanding = len(self._in_flight) + new_name + 1
        for file in self._in_flight:
            self._disk.sync(file, self._one_done)
        if new_name:
            self._disk.in_background(
                partial(self._disk.sync_folder, FOLDER), lambda _, error: self._one_done(error)
            )
        self._disk.sync(self._file, self._one_done)

    def _one_done(self, error: OSError | None) -> None:
        self._outstanding -= 1
        if self.failure is not None or self._closed:
            return
        if error is not None:
            self._fail(error, f"syncing {FOLDER}/")
        elif self._outstanding == 0:
            self._group_done()

    def _group_done(self) -> None:
        for file in self._in_flight:
            file.close()
        self._in_flight = []
        self.durable_position = self._target
        try:
            self._synced_notes.note(self.durable_position)
        except OSError as error:
            self._fail(error, f"writing {FOLDER}/")
            return
        self._retire()
        self._on_durable()
        self.sync(self._wanted)

    def close(self) -> None:
        """Make everything durable, record that durably, and close. Blocks. Raises OSError."""
        if self._closed:
            return
        try:
            self.sync_blocking()
        finally:
            self._closed = True
            for file in (*self._in_flight, *self._unsynced, self._file):
                file.close()
            self._synced_notes.close()

    def sync_blocking(self) -> None:
        """Make everything durable and record that durably. Does nothing after a failure.

        Blocks. Raises OSError.
        """
        self.flush()
        if self.failure is not None:
            return
        for file in (*self._in_flight, *self._unsynced, self._file):
            file.sync()
        self._disk.sync_folder(FOLDER)
        self.durable_position = self.written_position
        self.append(JournalFrameKind.NOTE, b"")
        if not self._write_buffer():
            # The note was not written, so the synced notes must not say that it is durable.
            return
        self._file.sync()
        self.durable_position = self.written_position
        self._synced_notes.note(self.durable_position)
        self._synced_notes.sync()

    def _fail(self, error: OSError, doing: str) -> None:
        if self.failure is None:
            self.failure = explain(error, doing)
            self._on_failed(self.failure)

    # -- forgetting --------------------------------------------------------------------------

    def retire_below(self, index: int, when_durable: int) -> None:
        """Unlink the oldest segments, those that hold only entries below `index`.

        This waits until `when_durable`, the position behind entry `index`, is durable. By then the
        segment that holds the entry, and the state that it begins with, are durable too.
        """
        self._retire_below = max(index, self._retire_below)
        self._retire_at = max(when_durable, self._retire_at)
        self._retire()

    def retire_older(self) -> None:
        """Unlink all older segments once everything appended so far is durable."""
        self._closed_segments = [s._replace(top_index=0) for s in self._closed_segments]
        self.top_index = 0
        self._retire_below = 1
        self._retire_at = self.written_position

    def _retire(self) -> None:
        if not self._retire_below or self.durable_position < self._retire_at:
            return
        old: list[str] = []
        while self._closed_segments and self._closed_segments[0].top_index < self._retire_below:
            old.append(self._closed_segments.pop(0).name)
        self._retire_below = 0
        if old:
            self._disk.in_background(partial(self._unlink, old), self._unlinked)

    def _unlink(self, names: list[str]) -> None:
        """Unlink oldest first, each durably before the next, so that a crash leaves no gap."""
        for name in names:
            self._disk.unlink(name)
            self._disk.sync_folder(FOLDER)

    def _unlinked(self, _: object, error: OSError | None) -> None:
        if error is not None and not self._closed:
            self._fail(error, f"removing old segments of {FOLDER}/")
