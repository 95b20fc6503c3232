"""The catalogue: which segments are here, which one holds an offset, and where in the file.

Rule: the catalogue only reads; it never changes a segment. The *run* is the segments that end at
the end of the log without a gap between them. Each of them names the chain hash that the one before
it ends in.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ledger.batch import BATCH_BYTES_MAX, HEAD, HEAD_BYTES, MAGIC, Batch, hash_of, parse
from ledger.chain import LogMark
from ledger.checker import header_objection
from ledger.errors import (
    DamagedBatchError,
    DamagedLedgerError,
    HistoryMissingError,
    LedgerError,
    WrongClusterError,
)
from ledger.frame import take_frame
from ledger.gaps import Gap, list_gaps
from ledger.index import EVERY_BYTES, EpochStart, SegmentIndex, index_name
from ledger.scan import Head, walk_frames, walk_heads
from ledger.segments import (
    ARCHIVE_FOLDER,
    HEADER_BYTES_MAX,
    LOG_FOLDER,
    SegmentHeader,
    parse_segment_header,
    segment_base,
)
from runtime.disk.interface import Disk

SEARCH_BYTES = 2 * EVERY_BYTES
_BASE_OFFSET, _PREVIOUS_HASH = 5, 8
"""Among the fields of a batch's head."""


class Segment:
    """One segment file."""

    def __init__(self, path: str, header: SegmentHeader, header_length: int) -> None:
        self.path = path
        self.header = header
        self.header_length = header_length
        self.index: SegmentIndex | None = None

    @property
    def base_offset(self) -> int:
        """The offset of the first record."""
        return self.header.base_offset

    def new_index(self) -> SegmentIndex:
        """Return an empty index for this segment."""
        return SegmentIndex(self.base_offset, self.header_length, self.header.previous.epoch)


def find_segments(disk: Disk) -> list[tuple[int, str]]:
    """Return (base offset, path) of the segment files in `log/` and `archive/`, ascending."""
    found: dict[int, str] = {}
    for folder in (ARCHIVE_FOLDER, LOG_FOLDER):
        for name in disk.list(folder):
            base = segment_base(name)
            if base is not None:
                found[base] = f"{folder}/{name}"
    return sorted(found.items())


def read_header(
    disk: Disk, path: str, base_offset: int, cluster_id: str
) -> tuple[SegmentHeader, int]:
    """Read a segment's header. Raises DamagedBatchError, WrongClusterError."""
    header, length = parse_segment_header(disk.read(path, 0, HEADER_BYTES_MAX))
    if header.cluster_id != cluster_id:
        raise WrongClusterError(
            f"{path} belongs to cluster {header.cluster_id!r}, and this node to {cluster_id!r}. "
            f"Start the node on its own folder, or correct cluster_id"
        )
    reason = header_objection(header, cluster_id, base_offset, None)
    if reason:
        raise DamagedBatchError(0, reason)
    return header, length


class Catalogue:
    """The segments up to `log_end`. The owner of the catalogue moves `log_end` forward."""

    def __init__(
        self,
        disk: Disk,
        cluster_id: str,
        segments: list[Segment],
        log_end: int,
        *,
        alone: bool = False,
    ) -> None:
        """`alone`: the segments are not those of the node's ledger, and have no gaps."""
        self._disk = disk
        self._cluster_id = cluster_id
        self.segments = segments
        self.log_end = log_end
        self._bases = [segment.base_offset for segment in segments]
        self.gap: Gap | None = None
        self._first = 0
        if not alone:
            self.settle_gap()

    @property
    def log_start(self) -> int:
        """The first offset of the run."""
        return self._bases[self._first] if self.segments else self.log_end

    @property
    def run(self) -> list[Segment]:
        """The segments of the run."""
        return self.segments[self._first :]

    def add(self, segment: Segment) -> None:
        """Add a segment. It replaces one with the same base offset."""
        i = bisect_right(self._bases, segment.base_offset)
        if i and self._bases[i - 1] == segment.base_offset:
            self.segments[i - 1] = segment
            return
        self.segments.insert(i, segment)
        self._bases.insert(i, segment.base_offset)
        if i < self._first:
            self._first += 1

    def remove_oldest(self) -> Segment:
        """Forget the oldest segment, and return it. Its file is the caller's affair."""
        self._bases.pop(0)
        if self._first:
            self._first -= 1
        return self.segments.pop(0)

    def settle_gap(self) -> None:
        """Find the run. It begins after the highest gap that is still open.

        A gap may have been filled since its marker was written: segments are fetched newest first,
        and each is put in place only if it reaches the one after it.
        """
        self.gap, self._first = None, 0
        for gap in reversed(list_gaps(self._disk)):
            inside = [base for base in self._bases if gap.start < base <= gap.end]
            end = min(inside, default=gap.end)
            below = [segment for segment in self.segments if segment.base_offset <= gap.start]
            if not below or self._end_of_file(below[-1]) != end:
                self.gap = Gap(gap.start, end)
                self._first = bisect_right(self._bases, end - 1)
                return

    def _end_of_file(self, segment: Segment) -> int:
        end = segment.base_offset
        try:
            for head in walk_heads(self._disk, segment.path, segment.header_length):
                end = head.end_offset
        except DamagedBatchError:
            pass
        return end

    def segment_at(self, offset: int) -> Segment:
        """Return the segment that holds an offset. Raises HistoryMissingError."""
        if offset < self.log_start:
            raise HistoryMissingError(offset, self.log_start)
        return self.segments[bisect_right(self._bases, offset) - 1]

    def end_of(self, segment: Segment) -> int:
        """Return the offset after the last record of a segment of the run."""
        i = bisect_right(self._bases, segment.base_offset)
        return self._bases[i] if i < len(self._bases) else self.log_end

    def index_of(self, segment: Segment) -> SegmentIndex:
        """Return a segment's index: from memory, from disk, or built anew."""
        if segment.index is None:
            until = self.end_of(segment)
            index = self._kept_index(segment, until)
            if index is None:
                index = segment.new_index()
                self.fill_index(segment, index, until)
            segment.index = index
        return segment.index

    def _kept_index(self, segment: Segment, until: int) -> SegmentIndex | None:
        try:
            index = SegmentIndex.decode(self._disk.read(index_name(segment.base_offset)))
            size = self._disk.size(segment.path)
        except (FileNotFoundError, LedgerError):
            return None
        if index.base_offset != segment.base_offset or index.end_offset != until:
            return None
        return index if index.end_position == size else None

    def fill_index(self, segment: Segment, index: SegmentIndex, until: int) -> Head | None:
        """Walk a segment's heads up to `until`; return the last one. Raises DamagedLedgerError."""
        heads = walk_heads(self._disk, segment.path, index.end_position)
        try:
            last = index.add_heads(self._sure_of_epochs(segment, heads, index.epoch), until)
        except DamagedBatchError as error:
            raise self._damage(segment, error.position, index.end_offset, error.reason) from None
        if index.end_offset != until:
            reason = f"the segment ends at offset {index.end_offset}, it reached to {until}"
            raise self._damage(segment, index.end_position, index.end_offset, reason)
        return last

    def _sure_of_epochs(
        self, segment: Segment, heads: Iterator[Head], epoch: int
    ) -> Iterator[Head]:
        """Yield the heads; verify the two batches at each change of epoch.

        The end of an epoch is computed from heads only, and heads have no checksum of their own.
        """
        before = None
        for head in heads:
            if head.epoch != epoch:
                for one in (head,) if before is None else (before, head):
                    self._batch_at(segment, one)
                epoch = head.epoch
            before = head
            yield head

    def head_at(self, offset: int) -> tuple[Segment, Head]:
        """Return the head of the batch that holds an offset before `log_end`.

        A head has no checksum of its own. A caller that needs certainty must read the batch too.
        """
        segment = self.segment_at(offset)
        position = self.index_of(segment).place_before(offset)
        try:
            for head in walk_heads(self._disk, segment.path, position, SEARCH_BYTES):
                if head.end_offset > offset >= head.base_offset:
                    return segment, head
                if head.base_offset > offset:
                    reason = f"offset {offset} must come before, the batch begins behind it"
                    raise self._damage(segment, head.position, offset, reason)
                position = head.position + head.length
        except DamagedBatchError as error:
            raise self._damage(segment, error.position, offset, error.reason) from None
        raise self._damage(segment, position, offset, f"the segment ends before offset {offset}")

    def read(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        """Return encoded batches from the one that holds `offset`, with verified checksums.

        Returns at least one batch, unless that one ends after `up_to`; all from one segment.
        """
        segment, head = self.head_at(offset)
        up_to = min(up_to, self.end_of(segment))
        data = self._disk.read(segment.path, head.position, max(max_bytes, head.length))
        frames: list[bytes] = []
        at, end = 0, head.base_offset
        while at < len(data):
            try:
                batch_end, frame = _take_batch(data, at)
            except DamagedBatchError as error:
                if error.torn and frames:
                    break
                position = head.position + error.position
                raise self._damage(segment, position, end, error.reason) from None
            if batch_end > up_to:
                break
            frames.append(frame)
            at += len(frame)
            end = batch_end
            if end >= up_to:
                break
        self._check_chain(segment, head.position, end, frames)
        return frames

    def _check_chain(
        self, segment: Segment, position: int, end: int, frames: Sequence[bytes]
    ) -> None:
        """Compare each frame's hash with the one that the next frame names.

        A checksum alone doesn't show that a frame belongs here. `position` is the byte where the
        frames begin, `end` the offset at which they end.
        """
        named = [HEAD.unpack_from(frame)[_PREVIOUS_HASH] for frame in frames[1:]]
        named.append(self._named_behind(segment, position + sum(map(len, frames)), end))
        for frame, expected in zip(frames, named, strict=False):
            if expected is not None and hash_of(frame) != expected:
                offset = HEAD.unpack_from(frame)[_BASE_OFFSET]
                raise self._damage(segment, position, offset, "what follows does not continue it")
            position += len(frame)

    def _named_behind(self, segment: Segment, position: int, end: int) -> bytes | None:
        """Return the hash that the next batch names for this one; None if this is the last."""
        if end >= self.log_end:
            return None
        if end == self.end_of(segment):
            return self.segment_at(end).header.previous.head
        head = self._disk.read(segment.path, position, HEAD_BYTES)
        return HEAD.unpack(head)[_PREVIOUS_HASH] if len(head) == HEAD_BYTES else b""

    def batches(self, start: int, end: int) -> Iterator[Batch]:
        """Yield whole batches, verified and chained, from the one that holds `start`.

        The last one begins before `end` and before `log_end`. Raises DamagedLedgerError.
        """
        mark: LogMark | None = None
        while start < min(end, self.log_end):
            segment, head = self.head_at(start)
            stop = min(end, self.end_of(segment))
            for batch, position in self._parsed(segment, head.position, start):
                if mark is None and batch.header.base_offset == segment.base_offset:
                    mark = segment.header.previous
                reason = mark.objection(batch) if mark is not None else ""
                if reason:
                    raise self._damage(segment, position, start, reason)
                mark = LogMark(0, b"", 0, 0).after(batch)
                start = mark.log_end
                if start >= min(end, self.log_end):
                    self._check_chain(segment, position, start, [batch.encoded])
                yield batch
                if start >= stop:
                    break

    def _parsed(self, segment: Segment, position: int, offset: int) -> Iterator[tuple[Batch, int]]:
        frames = walk_frames(self._disk, segment.path, position)
        while True:
            try:
                frame = next(frames, None)
            except DamagedBatchError as error:
                raise self._damage(segment, error.position, offset, error.reason) from None
            if frame is None:
                reason = f"the segment ends at offset {offset}, it reached further"
                raise self._damage(segment, position, offset, reason)
            try:
                batch = parse(frame.window, frame.start)
            except DamagedBatchError as error:
                raise self._damage(segment, frame.position, offset, error.reason) from None
            offset, position = batch.header.end_offset, frame.position + frame.length
            yield batch, frame.position

    def hash_at(self, end_offset: int) -> bytes | None:
        """Return the hash of the batch that ends at an offset; None if no batch ends there.

        The next batch names that hash, so `end_offset` must be before `log_end`.
        """
        if end_offset < self.log_start:
            return None
        segment = self.segment_at(end_offset)
        if segment.base_offset == end_offset:
            return segment.header.previous.head
        segment, head = self.head_at(end_offset)
        batch = self._batch_at(segment, head)
        return batch.header.previous_hash if batch.header.base_offset == end_offset else None

    def _batch_at(self, segment: Segment, head: Head) -> Batch:
        """Read the batch of a head, which proves the head. Raises DamagedLedgerError."""
        try:
            return parse(self._disk.read(segment.path, head.position, head.length))
        except DamagedBatchError as error:
            raise self._damage(segment, head.position, head.base_offset, error.reason) from None

    def epoch_starts(self) -> list[EpochStart]:
        """Return where each epoch of the run begins, ascending.

        The first epoch may have begun before the run.
        """
        return [*self.newest_epochs()][::-1]

    def newest_epochs(self) -> Iterator[EpochStart]:
        """Yield where each epoch of the run begins, the newest first.

        A caller that takes the first few looks at few segments. Raises DamagedLedgerError.
        """
        after: int | None = None
        for place in range(len(self.segments) - 1, self._first - 1, -1):
            segment = self.segments[place]
            before = segment.header.previous.epoch
            if after != before:
                index = self.index_of(segment)
                if after not in (None, index.epoch):
                    reason = (
                        f"it ends in epoch {index.epoch}, the segment behind it begins in {after}"
                    )
                    raise self._damage(segment, 0, segment.base_offset, reason)
                yield from reversed(index.epoch_starts)
            after = before
        if after:
            yield EpochStart(after, self.segments[self._first].base_offset)

    def _damage(
        self, segment: Segment, position: int, offset: int, reason: str
    ) -> DamagedLedgerError:
        return DamagedLedgerError(
            segment.path, position, offset, reason, base_offset=segment.base_offset
        )


def _take_batch(data: bytes, at: int) -> tuple[int, bytes]:
    frame = take_frame(data, at, MAGIC, BATCH_BYTES_MAX)
    head = HEAD.unpack_from(frame)
    return head[5] + head[4], frame
