"""Reads a node's ledger from outside, while the node runs or after it has stopped.

Rule: a reader needs only the segment files and writes nothing. These are notes, not damage: the
unfinished tail of a running node, bad bytes after the mark that was synced, and a log that ends
before that mark.
"""

from collections.abc import Iterator

from ledger.batch import Batch, parse
from ledger.catalogue import Catalogue, Segment, find_segments, read_header
from ledger.chain import LogMark
from ledger.errors import (
    DamagedBatchError,
    DamagedLedgerError,
    LedgerError,
    UnknownFormatError,
)
from ledger.scan import Head, walk_heads
from ledger.segments import HEADER_BYTES_MAX, LOG_FOLDER, parse_segment_header
from runtime.disk.interface import Disk


class LedgerReader:
    """The ledger in a folder, as far as it can be read now.

    `cluster_id` None: take it from the files. `synced_to`: the manifest's mark, if known. Raises
    DamagedLedgerError, WrongClusterError, UnknownFormatError; LedgerError if there is no ledger.
    """

    def __init__(
        self, disk: Disk, *, cluster_id: str | None = None, synced_to: LogMark | None = None
    ) -> None:
        self._disk = disk
        self._synced_end = synced_to.log_end if synced_to is not None else None
        self.cluster_id = cluster_id_of(disk) if cluster_id is None else cluster_id
        self.notes: list[str] = []
        self._catalogue = self._find()

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""
        return self._catalogue.log_start

    @property
    def log_end(self) -> int:
        """The offset after the last record, as of the last `refresh`."""
        return self._catalogue.log_end

    @property
    def start_timestamp_ms(self) -> int:
        """Timestamp of the batch before `log_start`; 0 before the first."""
        return self._catalogue.run[0].header.previous.timestamp_ms

    @property
    def catalogue(self) -> Catalogue:
        """The segments, as of the last `refresh`."""
        return self._catalogue

    def refresh(self) -> None:
        """Look again for what was appended."""
        self._catalogue = self._find()

    def batches(self, start: int | None = None, end: int | None = None) -> Iterator[Batch]:
        """Yield whole batches, checked and chained, from the one that holds `start`.

        The last one begins before `end`. Raises DamagedLedgerError for damage that can't be the
        unfinished tail, HistoryMissingError before `log_start`.
        """
        start = self.log_start if start is None else start
        end = self.log_end if end is None else end
        try:
            for batch in self._catalogue.batches(start, end):
                start = batch.header.end_offset
                yield batch
        except UnknownFormatError as error:
            place = f"{self._catalogue.segment_at(start).path}, after offset {start}"
            raise _placed(error, place) from None
        except DamagedLedgerError as error:
            if self._synced_end is None or start < self._synced_end:
                raise
            self._note(
                f"{error.file} ends at offset {start}, byte {error.position}. After that "
                f"{error.reason}. Those bytes were not synced yet; the node writes them again"
            )

    def end_of_batch(self, offset: int) -> int:
        """Return the end of the batch around `offset`; between two batches `offset` itself.

        Raises HistoryMissingError before `log_start`, DamagedLedgerError.
        """
        if offset <= self.log_start or offset >= self.log_end:
            return offset
        return self.batch_at(offset - 1).header.end_offset

    def hash_at(self, offset: int) -> bytes | None:
        """Return the chain hash of the records before `offset`; None if no batch ends there.

        Raises DamagedLedgerError.
        """
        if not self.log_start <= offset <= self.log_end:
            return None
        if offset == self.log_start:
            return self._catalogue.run[0].header.previous.head
        batch = self.batch_at(offset - 1)
        return batch.hash if batch.header.end_offset == offset else None

    def batch_at(self, offset: int) -> Batch:
        """Return the batch that holds an offset before `log_end`.

        Raises HistoryMissingError; DamagedLedgerError, also in the unfinished tail.
        """
        for batch in self.batches(offset, offset + 1):
            return batch
        raise LedgerError(f"the batch at offset {offset} is incomplete: {'; '.join(self.notes)}")

    def segment_marks(self) -> list[LogMark]:
        """Return the marks in the segments' headers, ascending. Quick."""
        return [segment.header.previous for segment in self._catalogue.run]

    def last_timestamp_ms(self) -> int:
        """Return the timestamp of the last batch; 0 in an empty log. Raises DamagedLedgerError."""
        if self.log_end == self.log_start:
            return self.start_timestamp_ms
        try:
            return self.batch_at(self.log_end - 1).header.timestamp_ms
        except LedgerError:
            if self._synced_end is None or self.log_end <= self._synced_end:
                raise
        # The tail is unfinished. The log ends where reading ends.
        timestamp_ms = self.start_timestamp_ms
        for batch in self.batches(max(self._synced_end - 1, self.log_start)):
            timestamp_ms = batch.header.timestamp_ms
        return timestamp_ms

    def offset_at_time(self, timestamp_ms: int) -> int:
        """Return the end offset of the log as it was at a time (inclusive).

        The search uses heads. It reads the first batch that is too late, to prove its time. A
        caller that reads up to the offset proves the batches before it. Raises DamagedLedgerError.
        """
        segments = self._catalogue.run
        later = [s for s in segments if s.header.previous.timestamp_ms > timestamp_ms]
        candidates = segments[: len(segments) - len(later)]
        if not candidates:
            return self.log_start
        segment = candidates[-1]
        end, until = segment.base_offset, self._catalogue.end_of(segment)
        heads = walk_heads(self._disk, segment.path, segment.header_length)
        while end < until:  # the tail may be unfinished
            try:
                head = _head_at(heads, end, until)
                if head.timestamp_ms > timestamp_ms:
                    parse(self._disk.read(segment.path, head.position, head.length))
                    break
            except DamagedBatchError as error:
                if self._synced_end is not None and end >= self._synced_end:
                    break  # an unfinished tail
                raise DamagedLedgerError(
                    segment.path, error.position, end, error.reason, base_offset=segment.base_offset
                ) from None
            end = head.end_offset
        return end

    def _find(self) -> Catalogue:
        self.notes.clear()
        segments: list[Segment] = []
        for base, path in find_segments(self._disk):
            try:
                header, length = read_header(self._disk, path, base, self.cluster_id)
            except DamagedBatchError as error:
                if self._is_tail(base, torn=error.torn):
                    self._note(f"{path} has no whole header yet: a node is beginning it")
                    break
                raise DamagedLedgerError(path, 0, base, error.reason, base_offset=base) from None
            except UnknownFormatError as error:
                raise _placed(error, path) from None
            segments.append(Segment(path, header, length))
        if not segments:
            raise LedgerError("no ledger is here: no segment file in log/ or archive/")
        end = self._walk_last(segments[-1])
        if self._synced_end is not None and end < self._synced_end:
            self._note(
                f"the log ends at offset {end}, but it was synced up to {self._synced_end}. Its "
                "end is lost, or the node was too far behind and is fetching it"
            )
        return Catalogue(self._disk, self.cluster_id, segments, end)

    def _walk_last(self, segment: Segment) -> int:
        """Return the log's end: the last whole frame of the last segment."""
        index = segment.new_index()
        try:
            index.add_heads(walk_heads(self._disk, segment.path, index.end_position), 2**63 - 1)
        except DamagedBatchError as error:
            if not self._is_tail(index.end_offset, torn=error.torn):
                raise DamagedLedgerError(
                    segment.path,
                    error.position,
                    index.end_offset,
                    error.reason,
                    base_offset=segment.base_offset,
                ) from None
            self._note(
                f"{segment.path} has an unfinished tail at byte {error.position}, "
                f"offset {index.end_offset}"
            )
        segment.index = index
        return index.end_offset

    def _is_tail(self, offset: int, *, torn: bool) -> bool:
        return torn if self._synced_end is None else offset >= self._synced_end

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def cluster_id_of(disk: Disk) -> str:
    """Return the cluster id in a folder's first readable segment. Raises LedgerError."""
    found = find_segments(disk)
    for _, path in found:
        try:
            return parse_segment_header(disk.read(path, 0, HEADER_BYTES_MAX))[0].cluster_id
        except DamagedBatchError:
            continue
        except UnknownFormatError as error:
            raise _placed(error, path) from None
    raise LedgerError(f"no ledger is here: no readable segment file in {LOG_FOLDER}/")


def _head_at(heads: Iterator[Head], offset: int, until: int) -> Head:
    """Return the next head, which must begin at an offset. Raises DamagedBatchError."""
    head = next(heads, None)
    if head is None:
        raise DamagedBatchError(0, f"the segment ends at offset {offset}, it reached to {until}")
    if head.base_offset != offset or head.end_offset > until:
        said = f"{head.base_offset} to {head.end_offset}"
        raise DamagedBatchError(head.position, f"offset {offset} must follow, not {said}")
    return head


def _placed(error: UnknownFormatError, place: str) -> UnknownFormatError:
    return UnknownFormatError(error.position, error.format_version, error.flags, place)
