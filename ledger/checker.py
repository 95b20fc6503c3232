"""Checks one segment piece by piece: frames, checksums, offsets, epochs, times and the chain.

Rule: all code that checks a whole segment does it here: opening after the mark, verifying, and
fetching from a peer. So there is one definition of a sound segment.
"""

from collections.abc import Callable, Mapping

from ledger.batch import Batch, parse
from ledger.chain import LogMark, first_hash
from ledger.errors import DamagedBatchError, LedgerError, UnknownFormatError
from ledger.segments import SegmentHeader, parse_segment_header

PIECE_BYTES = 128 * 1024
"""A good size for one `feed`: a few milliseconds of work."""


class BadSegmentError(LedgerError):
    """The first bad place in a segment."""

    def __init__(self, position: int, offset: int, reason: str, *, torn: bool = False) -> None:
        super().__init__(f"byte {position}, offset {offset}: {reason}")
        self.position = position
        self.offset = offset
        self.reason = reason
        self.torn = torn
        """The segment ends too early, but all bytes that are there are right."""


class SegmentChecker:
    """Checks a segment that the caller feeds from its first byte.

    All bytes it has passed are right.

    `previous` is the mark that the segment must continue. If it is None, the checker takes the mark
    in the segment's header. That is enough if the end is known, because the chain also proves
    backwards. `stop_at`: stop at the batch that ends at this offset and ignore the rest. `known`:
    chain hashes at batch ends, remembered elsewhere. `on_batch` gets each batch that passed, and
    the position behind it.
    """

    def __init__(
        self,
        cluster_id: str,
        base_offset: int,
        previous: LogMark | None = None,
        stop_at: int | None = None,
        known: Mapping[int, bytes] | None = None,
        on_batch: Callable[[Batch, int], None] | None = None,
    ) -> None:
        self._known = known or {}
        self._on_batch = on_batch
        self._cluster_id = cluster_id
        self._base_offset = base_offset
        self._previous = previous
        self._stop_at = stop_at
        self._rest = b""
        self.header: SegmentHeader | None = None
        self.header_length = 0
        self.position = 0
        """All bytes before this one are right."""
        self.mark = previous or LogMark(base_offset, b"", 0, 0)
        self.batches = 0
        self.records = 0
        self.last: Batch | None = None
        self.met: set[int] = set()
        """The offsets of `known` at which a batch ended with that hash."""

    @property
    def stopped(self) -> bool:
        """The checker has reached `stop_at`."""
        return self._stop_at is not None and self.mark.log_end >= self._stop_at

    def feed(self, data: bytes) -> None:
        """Check the next bytes. Raises BadSegmentError, UnknownFormatError."""
        buffer = self._rest + data if self._rest else data
        at = 0
        try:
            if self.header is None:
                at = self._take_header(buffer)
            while at < len(buffer) and not self.stopped:
                batch = parse(buffer, at)
                self._take(batch)
                at += len(batch.encoded)
        except DamagedBatchError as error:
            if not error.torn:
                raise BadSegmentError(self.position, self.mark.log_end, error.reason) from None
        except UnknownFormatError as error:
            raise UnknownFormatError(self.position, error.format_version, error.flags) from None
        self._rest = b"" if self.stopped else buffer[at:]

    def finish(self) -> None:
        """End the segment. Raises BadSegmentError, `torn`, if the last frame is incomplete."""
        if self.header is None or self._rest:
            raise BadSegmentError(
                self.position, self.mark.log_end, "the file ends inside a frame", torn=True
            )

    def forget_rest(self) -> None:
        """Drop the bytes of an incomplete frame. The next `feed` begins at `position`."""
        self._rest = b""

    def resume(self, position: int, batch: Batch) -> None:
        """Continue after a bad place, at a whole batch.

        The checker takes this batch's previous hash on trust, because the batch before it is lost.
        """
        header = batch.header
        self.mark = LogMark(
            header.base_offset, header.previous_hash, header.epoch, header.timestamp_ms
        )
        if self.header is None:
            self.header = SegmentHeader(self._cluster_id, self.mark)
        self.position, self._rest = position, b""

    def _take_header(self, buffer: bytes) -> int:
        header, length = parse_segment_header(buffer)
        reason = header_objection(header, self._cluster_id, self._base_offset, self._previous)
        if reason:
            raise BadSegmentError(0, self._base_offset, reason)
        self.header, self.header_length, self.mark = header, length, header.previous
        self.position = length
        return length

    def _take(self, batch: Batch) -> None:
        reason = self.mark.objection(batch)
        if reason:
            raise BadSegmentError(self.position, self.mark.log_end, reason)
        if self._stop_at is not None and batch.header.end_offset > self._stop_at:
            raise BadSegmentError(
                self.position,
                self.mark.log_end,
                f"a batch reaches to {batch.header.end_offset}, over {self._stop_at}",
            )
        end = batch.header.end_offset
        if end in self._known:
            if self._known[end] != batch.hash:
                raise BadSegmentError(
                    self.position,
                    self.mark.log_end,
                    f"the chain hash at offset {end} is not the one remembered elsewhere",
                )
            self.met.add(end)
        self.mark = self.mark.after(batch)
        self.position += len(batch.encoded)
        self.batches += 1
        self.records += batch.header.count
        self.last = batch
        if self._on_batch is not None:
            self._on_batch(batch, self.position)


def header_objection(
    header: SegmentHeader, cluster_id: str, base_offset: int, previous: LogMark | None
) -> str:
    """Return why a segment's header is not the expected one; empty if it is."""
    if header.cluster_id != cluster_id:
        return f"the segment belongs to cluster {header.cluster_id!r}, this is {cluster_id!r}"
    if header.base_offset != base_offset:
        return f"the header says {header.base_offset}, so this is another segment's content"
    if previous is not None and header.previous != previous:
        return "the segment does not continue the one before: the chain is broken"
    if base_offset == 0 and header.previous.head != first_hash(cluster_id):
        return "the first hash is not the SHA-256 of the cluster id"
    return ""
