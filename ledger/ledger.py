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
from runtime.disk import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger


class Accepted(msgspec.Struct, frozen=True):
    """The batch is in the ledger; in the page cache until a sync."""

    already_there: bool
    """It was on disk before a restart, byte for byte."""


class Skipped(msgspec.Struct, frozen=True):
    """The fence kept the batch out, as on every node."""

    reason: str


class Ledger:
    """The accepted log; made by `Ledger.open`."""

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
        """Open, quickly: only heads of the last segment before the mark are walked.

        Raises DamagedLedgerError when bytes before the mark are gone or wrong (see
        `backfill.SegmentPull`), WrongClusterError, UnknownFormatError, OSError.
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
        """First offset that can be read."""
        return self._catalogue.log_start

    @property
    def log_end(self) -> int:
        """Offset of the next record to be accepted."""
        return self._mark.log_end

    @property
    def head(self) -> bytes:
        """Chain hash at the log's end."""
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
        """The segments; for backfill and status."""
        return self._catalogue

    def mark(self) -> LogMark:
        """Return the place behind the last accepted batch; durable only after a `sync`."""
        return self._mark

    def objection(self, term: int, batch: Batch) -> str:
        """Say why the fence would keep a batch out; empty when it passes."""
        header = batch.header
        if header.epoch != term:
            return f"its epoch is {header.epoch} and the term of its entry {term}"
        if header.base_offset != self._mark.log_end:
            return f"it begins at {header.base_offset} and the log ends at {self._mark.log_end}"
        return ""

    def accept(self, term: int, batch: Batch) -> Accepted | Skipped:
        """Take the next committed batch, of the Raft entry of `term`.

        Raises ChainBrokenError or DivergedError: halt. An OSError leaves the ledger as it was
        (a full disk: try again when there is space), unless `failed` is set: then stop.
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
                f"but {reason}. This node's history is not the cluster's: keep its folder for "
                f"inquiry, and start it with an empty one"
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
        """The error that ended a sync; nothing is accepted any more and the node must stop."""
        return self._failed

    def sync(self, on_done: Callable[[OSError | None], None]) -> LogMark:
        """Make all that was accepted durable; returns the mark that then is.

        A sync that failed is never repeated (the fsyncgate rule): every later call raises.
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
        """Close the files, without a sync."""
        self._tail.close()

    def read_from(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        """Return encoded batches, as on disk, from the one that holds `offset`.

        Those that end at or before `up_to`; about `max_bytes`, but at least one. Empty when there
        is none. Raises HistoryMissingError before `log_start`, DamagedLedgerError.
        """
        up_to = min(up_to, self._mark.log_end)
        if offset >= up_to:
            return []
        found = self._newest.read(offset, max_bytes, up_to)
        return self._catalogue.read(offset, max_bytes, up_to) if found is None else found

    def batches(self, start: int, end: int | None = None) -> Iterator[Batch]:
        """Yield whole batches, checked and chained, from the one that holds `start`.

        Up to the last that begins before `end` (None: the log's end, wherever it is by then).
        """
        return self._catalogue.batches(start, 2**63 - 1 if end is None else end)

    def hash_at(self, end_offset: int) -> bytes | None:
        """Return the chain hash at an offset; None: no batch ends there, or not held here."""
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

        None when all epochs here are above it. A fetcher whose last epoch and offset are
        `(epoch, offset)` shares our history if the answer is `(epoch, at least offset)`.
        """
        starts = self.epoch_start_offsets
        for i in range(len(starts) - 1, -1, -1):
            if starts[i].epoch <= epoch:
                end = starts[i + 1].start_offset if i + 1 < len(starts) else self.log_end
                return starts[i].epoch, end
        return None

    def archive_before(self, offset: int) -> list[str]:
        """Move closed, synced segments that end at or before `offset` to `archive/`.

        Returns their names. They stay readable. Blocks for one folder sync.
        """
        if self._failed is not None:
            raise LedgerError("a sync failed: the node must stop")
        return archive_segments(self._disk, self._catalogue, min(offset, self._durable_end))
