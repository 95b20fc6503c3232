"""The ledger of one node: what was accepted, appended once and never changed.

Rule: `accept` is the fence and the only way in. A batch whose epoch is not the term of its
entry, or that does not begin at the log's end, is skipped: the same way on every node. A batch
that passes and does not continue the chain halts the node.

The ledger is written at apply and synced lazily, always before the journal forgets. So after a
restart it begins again at the manifest's mark: bytes before the mark were synced and are only
looked at when they are read; bytes behind it are compared with the batches that are applied
again, and what is torn there is cut, reported and written from the journal.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ledger.archive import archive_segments
from ledger.backfill import tidy_gaps
from ledger.batch import Batch
from ledger.cache import NewestBatches
from ledger.catalogue import Catalogue
from ledger.chain import LogMark
from ledger.errors import ChainBrokenError, LedgerError
from ledger.index import EpochStart
from ledger.opening import LEDGER_OPENED, open_segments
from ledger.segments import SEGMENT_BYTES
from ledger.tail import Tail
from runtime.disk.interface import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger


class Accepted(msgspec.Struct, frozen=True):
    """The batch is in the ledger, but maybe only in the page cache until the next sync."""

    already_there: bool
    """The same bytes were on disk before the restart."""


class Skipped(msgspec.Struct, frozen=True):
    """The fence kept the batch out. Every node decides the same."""

    reason: str


class Ledger:
    """The accepted log. `Ledger.open` makes it."""

    def __init__(
        self, disk: Disk, cluster_id: str, catalogue: Catalogue, tail: Tail, mark: LogMark
    ) -> None:
        self._disk = disk
        self._cluster_id = cluster_id
        self._catalogue = catalogue
        self._tail = tail
        self._mark = mark
        self._newest = NewestBatches()
        self._failed: OSError | None = None
        self._durable_end = mark.log_end
        self._closed_bytes: dict[int, int] = {}
        """Sizes of closed segments, as far as somebody has asked."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        cluster_id: str,
        *,
        synced_to: LogMark | None,
        segment_bytes: int = SEGMENT_BYTES,
        log: "BoundLogger",
    ) -> "Ledger":
        """Open the ledger. Quick: it walks only the heads of the last segment before the mark.

        Raises DamagedLedgerError if bytes before the mark are missing or wrong (`backfill.mend`
        fetches them), WrongClusterError, UnknownFormatError, OSError.
        """
        mark = synced_to or LogMark.beginning(cluster_id)
        segments, position = open_segments(disk, cluster_id, mark, log)
        vetted = [s for s in segments if s.base_offset < mark.log_end]
        waiting = segments[len(vetted) :]
        catalogue = Catalogue(disk, cluster_id, vetted, mark.log_end)
        tidy_gaps(disk, catalogue)
        tail = Tail(disk, cluster_id, catalogue, waiting, position, segment_bytes, log)
        log.info(LEDGER_OPENED, log_start=catalogue.log_start, log_end=mark.log_end)
        return cls(disk, cluster_id, catalogue, tail, mark)

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""
        return self._catalogue.log_start

    @property
    def log_end(self) -> int:
        """The offset of the next record."""
        return self._mark.log_end

    @property
    def head(self) -> bytes:
        """The chain hash at the end of the log."""
        return self._mark.head

    @property
    def last_epoch(self) -> int:
        """Epoch of the last batch; 0 before the first."""
        return self._mark.epoch

    @property
    def last_timestamp_ms(self) -> int:
        """Timestamp of the last batch; 0 before the first."""
        return self._mark.timestamp_ms

    @property
    def catalogue(self) -> Catalogue:
        """The segments, for backfill and status."""
        return self._catalogue

    def mark(self) -> LogMark:
        """Return the mark after the last accepted batch. It is durable only after a `sync`."""
        return self._mark

    def objection(self, term: int, batch: Batch) -> str:
        """Return why the fence would keep a batch out; empty if it passes."""
        header = batch.header
        if header.epoch != term:
            return f"its epoch is {header.epoch} and the term of its entry {term}"
        if header.base_offset != self._mark.log_end:
            return f"it begins at {header.base_offset} and the log ends at {self._mark.log_end}"
        return ""

    def accept(self, term: int, batch: Batch) -> Accepted | Skipped:
        """Take the next committed batch. `term` is that of its Raft entry.

        Raises ChainBrokenError or DivergedError: the node must halt. After an OSError the ledger is
        unchanged, and the caller may try again when the disk has space. If `failed` is set, it must
        stop.
        """
        if self._failed is not None:
            raise self._failed
        reason = self.objection(term, batch)
        if reason:
            return Skipped(reason)
        reason = self._mark.objection(batch)
        if reason:
            raise ChainBrokenError(
                f"the batch at offset {batch.header.base_offset} of epoch {term} passed the fence, "
                f"but {reason}. This node's history is not the cluster's. Keep its folder for "
                f"inquiry, and start the node with an empty one"
            )
        already_there = self._tail.take(self._mark, batch)
        self._mark = self._mark.after(batch)
        self._catalogue.log_end = self._mark.log_end
        self._newest.add(
            batch.header.base_offset, batch.header.end_offset, batch.encoded, batch.hash
        )
        return Accepted(already_there)

    @property
    def failed(self) -> OSError | None:
        """The error of a failed sync.

        The ledger accepts nothing any more, and the node must stop.
        """
        return self._failed

    def sync(self, on_done: Callable[[OSError | None], None]) -> LogMark:
        """Make everything that was accepted durable; return the mark that is durable then.

        A failed sync is never repeated, because the system may have dropped the dirty pages
        (fsyncgate). Every later call raises the same error.
        """
        mark = self._mark

        def done(error: OSError | None) -> None:
            self._failed = self._failed or error
            if error is None:
                self._durable_end = max(self._durable_end, mark.log_end)
            on_done(self._failed)

        if self._failed is not None:
            raise self._failed
        self._tail.sync(done)
        return mark

    def close(self) -> None:
        """Close the files without a sync."""
        self._tail.close()

    def read_from(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        """Return encoded batches, as on disk, from the one that holds `offset`.

        Returns batches that end at or before `up_to`: about `max_bytes`, but at least one. Empty if
        there is none. Raises HistoryMissingError before `log_start`, DamagedLedgerError.
        """
        up_to = min(up_to, self._mark.log_end)
        if offset >= up_to:
            return []
        found = self._newest.read(offset, max_bytes, up_to)
        return self._catalogue.read(offset, max_bytes, up_to) if found is None else found

    def segment_bases(self) -> list[int]:
        """Return the base offsets of the segments that reach the log's end without a gap."""
        return [segment.base_offset for segment in self._catalogue.run]

    def segment_size(self, base_offset: int) -> int:
        """Return the bytes of one of them up to the log's end. Raises OSError."""
        segment = self._catalogue.segment_at(base_offset)
        if self._catalogue.end_of(segment) == self._mark.log_end:
            # Behind it there may be bytes of an incarnation before.
            return self._catalogue.index_of(segment).end_position
        return self._disk.size(segment.path)

    def size_bytes(self) -> int:
        """Return the bytes of all of them, up to the log's end. Raises OSError."""
        bases = self.segment_bases()
        for base in bases[:-1]:
            if base not in self._closed_bytes:
                self._closed_bytes[base] = self.segment_size(base)
        newest = self.segment_size(bases[-1]) if bases else 0
        return newest + sum(self._closed_bytes[base] for base in bases[:-1])

    def read_segment(self, base_offset: int, position: int, length: int) -> bytes:
        """Return up to `length` bytes of one of them, unverified, none after the log's end."""
        segment = self._catalogue.segment_at(base_offset)
        length = min(length, self.segment_size(base_offset) - position)
        return self._disk.read(segment.path, position, length) if length > 0 else b""

    def batches(self, start: int, end: int | None = None) -> Iterator[Batch]:
        """Yield whole batches, checked and chained, from the one that holds `start`.

        The last one begins before `end`. With None, it is the last one in the log at that time.
        """
        return self._catalogue.batches(start, 2**63 - 1 if end is None else end)

    def hash_at(self, end_offset: int) -> bytes | None:
        """Return the chain hash at an offset; None if no batch here ends there."""
        if end_offset == self._mark.log_end:
            return self._mark.head
        if end_offset > self._mark.log_end:
            return None
        return self._newest.hash_at(end_offset) or self._catalogue.hash_at(end_offset)

    @property
    def epoch_start_offsets(self) -> list[EpochStart]:
        """Where each epoch held here begins, ascending."""
        return self._catalogue.epoch_starts()

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Return (the largest epoch here that is not above `epoch`, offset where it ends).

        None if all epochs here are above it. A fetcher with the last epoch and offset `(epoch,
        offset)` shares our history if the answer is `(epoch, at least offset)`.
        """
        end = self.log_end
        if self._catalogue.log_start < end and epoch >= self.last_epoch:
            return self.last_epoch, end
        for start in self._catalogue.newest_epochs():
            if start.epoch <= epoch:
                return start.epoch, end
            end = start.start_offset
        return None

    def forget_oldest(self, moved_to: str) -> str:
        """Forget the oldest segment of all that are here; return the path of its file.

        The caller removes the file. It has made sure that the segment can be read elsewhere.
        `moved_to`: the segment's path from now on, for those who are just reading it.
        """
        segment = self._catalogue.remove_oldest()
        path, segment.path = segment.path, moved_to
        self._closed_bytes.pop(segment.base_offset, None)
        return path

    def archive_before(self, offset: int) -> list[str]:
        """Move closed, synced segments that end at or before `offset` to `archive/`.

        Returns their names. They stay readable. Blocks for one folder sync.
        """
        if self._failed is not None:
            raise LedgerError("a sync failed: the node must stop")
        return archive_segments(self._disk, self._catalogue, min(offset, self._durable_end))
