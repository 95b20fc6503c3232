"""The end of the ledger, where batches are appended or compared with what a restart left.

Rule: after the mark nothing on disk is trusted. A batch that is applied again is compared with the
bytes that are there. Equal bytes stay. A frame that doesn't continue our chain was left by a crash:
it is cut off and written again. A whole, chained frame that differs means that this node once
accepted another batch: DivergedError.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ledger.batch import BATCH_BYTES_MAX, Batch, parse
from ledger.catalogue import Catalogue, Segment
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, DivergedError
from ledger.index import index_name
from ledger.opening import LEDGER_TAIL_CUT, drop_files
from ledger.scan import WINDOW_BYTES
from ledger.segments import LOG_FOLDER, SegmentHeader, must_roll, segment_name
from ledger.unsynced import UnsyncedFiles
from runtime.disk.interface import AppendFile, Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger


class Tail:
    """The segment that is being written, and the ones after it that a crash may have left.

    `position` is where the next batch belongs in the last segment of the catalogue.
    """

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        catalogue: Catalogue,
        waiting: list[Segment],
        position: int,
        segment_bytes: int,
        log: "BoundLogger",
    ) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._catalogue = catalogue
        self._waiting = waiting
        self._position = position
        self._segment_bytes = segment_bytes
        self._log = log
        self._segment = catalogue.segments[-1] if catalogue.segments else None
        self._file: AppendFile | None = None
        self._size = 0
        """Of the file; bytes from `position` on were left by the incarnation before."""
        self._window = (0, b"")
        self._unsynced = UnsyncedFiles(disk)
        if self._segment is not None:
            self._use(self._segment)

    def take(self, mark: LogMark, batch: Batch) -> bool:
        """Take the batch that continues `mark`; return True if its bytes were already here.

        Raises DivergedError; OSError, with nothing changed.
        """
        there = self._is_there(mark, batch)
        if not there:
            self._write(mark, batch)
        segment = self._segment
        assert segment is not None
        assert segment.index is not None
        header = batch.header
        segment.index.add(header.base_offset, header.count, header.epoch, len(batch.encoded))
        self._position += len(batch.encoded)
        return there

    def sync(self, on_done: Callable[[OSError | None], None]) -> None:
        """Make everything that was taken so far durable."""
        self._unsynced.sync(self._file, on_done)

    def close(self) -> None:
        """Close all files without a sync."""
        self._unsynced.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    # Bytes that a restart left.

    def _is_there(self, mark: LogMark, batch: Batch) -> bool:
        if self._position == self._size and self._waiting:
            self._enter_waiting(mark)
        if self._position == self._size:
            return False
        length = len(batch.encoded)
        if self._left(length) == batch.encoded:
            return True
        self._judge(mark, batch)
        return False

    def _left(self, length: int) -> bytes:
        start, window = self._window
        at = self._position - start
        if at < 0 or at + length > len(window):
            assert self._segment is not None
            window = self._disk.read(self._segment.path, self._position, WINDOW_BYTES)
            self._window, at = (self._position, window), 0
        return window[at : at + length]

    def _judge(self, mark: LogMark, batch: Batch) -> None:
        """Cut what lies at the batch's place. Raises DivergedError if it is another good batch."""
        try:
            other = parse(self._left(BATCH_BYTES_MAX))
            reason = mark.objection(other)
        except DamagedBatchError as error:
            reason = error.reason
        if not reason:
            raise DivergedError(
                f"offset {mark.log_end}: the batch that was committed (hash {batch.hash.hex()}) is "
                f"not the one that this node has on disk (hash {other.hash.hex()}). Keep the "
                f"node's folder for inquiry, and start the node with an empty one"
            )
        self._cut(reason)

    def _cut(self, reason: str) -> None:
        assert self._file is not None
        if self._waiting:
            drop_files(self._disk, [segment.path for segment in self._waiting], reason, self._log)
            self._waiting = []
        self._log.warning(
            LEDGER_TAIL_CUT,
            file=self._file.name,
            position=self._position,
            bytes=self._size - self._position,
            reason=reason,
        )
        self._file.truncate(self._position)
        self._size = self._position

    def _enter_waiting(self, mark: LogMark) -> None:
        segment = self._waiting[0]
        if segment.header.previous != mark:
            if segment.base_offset == mark.log_end:
                raise DivergedError(
                    f"{segment.path} continues another history at offset {mark.log_end}. Keep this "
                    f"node's folder for inquiry, and start the node with an empty one"
                )
            drop_files(
                self._disk,
                [segment.path for segment in self._waiting],
                "the batches before it are not here",
                self._log,
            )
            self._waiting = []
            return
        self._leave()
        self._waiting.pop(0)
        segment.index = segment.new_index()
        self._use(segment)
        self._position = segment.header_length

    # New bytes.

    def _write(self, mark: LogMark, batch: Batch) -> None:
        segment, length = self._segment, len(batch.encoded)
        if segment is None or must_roll(
            self._position, segment.header_length, length, self._segment_bytes
        ):
            self._roll(mark, batch)
            return
        assert self._file is not None
        self._append(self._file, batch.encoded)
        self._size += length

    def _append(self, file: AppendFile, data: bytes) -> None:
        size = file.size()
        try:
            file.append(data)
        except OSError:
            file.truncate(size)
            raise

    def _roll(self, mark: LogMark, batch: Batch) -> None:
        header = SegmentHeader(self._cluster_id, mark)
        encoded = header.encode()
        file = self._disk.open(f"{LOG_FOLDER}/{segment_name(mark.log_end)}")
        try:
            file.truncate(0)
            self._append(file, encoded + batch.encoded)
        except OSError:
            file.close()
            raise
        self._leave()
        segment = Segment(file.name, header, len(encoded))
        segment.index = segment.new_index()
        self._segment, self._file = segment, file
        self._position, self._size = len(encoded), len(encoded) + len(batch.encoded)
        self._catalogue.add(segment)

    def _use(self, segment: Segment) -> None:
        self._segment = segment
        self._file = self._disk.open(segment.path)
        self._size = self._file.size()
        self._window = (0, b"")
        if self._catalogue.segments[-1:] != [segment]:
            self._catalogue.add(segment)

    def _leave(self) -> None:
        """End a segment: write its index, and keep its file open until it is synced."""
        segment = self._segment
        if segment is None or segment.index is None:
            return
        assert self._file is not None
        self._unsynced.retire(self._file)
        name, data = index_name(segment.base_offset), segment.index.encode()
        self._disk.in_background(
            lambda: self._disk.replace(name, data), lambda _result, _error: None
        )
