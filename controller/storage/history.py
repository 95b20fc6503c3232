"""The whole history that a controller can show: its own ledger, and before it the archive's part.

Rule: nobody waits for the archive on the loop. A read in a segment that lies only in the archive
raises SegmentAwayError; `recall` then brings the segment, verified, into the cache (`recalled/`),
and calls back. If it can't, it calls back with a sentence, and nothing is changed.
"""

from collections.abc import Callable
from functools import partial

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.archive_access import (
    ArchiveAccess,
    ArchiveUnavailableError,
    refused_here,
)
from controller.storage.fetch_job import FetchJob, Steps
from ledger.archived_history import ArchivedHistory
from ledger.catalogue import Catalogue
from ledger.errors import (
    ArchiveDamagedError,
    DamagedLedgerError,
    HistoryMissingError,
    LedgerError,
    SegmentAwayError,
)
from ledger.ledger import Ledger
from ledger.pull import SegmentPull
from ledger.recalled import RECALLED_FOLDER, RecalledSegments
from ledger.receipts import Receipt
from ledger.segments import segment_name
from quorum.api import Quorum
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk

OnRecalled = Callable[[str], None]
"""Called once: empty, or a sentence that says why the segment can't be read."""


class _Waiting:
    """Those who wait for one segment."""

    def __init__(self, receipt: Receipt) -> None:
        self.receipt = receipt
        self.calls: list[tuple[OnRecalled, Timer]] = []


class ReadableHistory:
    """Reads the log from its first record that is here or in the archive."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        archived: ArchivedHistory,
        access: ArchiveAccess | None,
        ledger: Callable[[], Ledger],
        log: FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._clock = clock
        self._disk = disk
        self._archived = archived
        self._access = access
        self._ledger = ledger
        self._log = log
        self._job = FetchJob(config, clock, quorum)
        self._recalled = RecalledSegments(disk, config.cluster_id, config.archive_cache_bytes)
        self._waiting: dict[int, _Waiting] = {}
        self._running = False
        self.recalls = 0
        """Segments that were read back."""
        self.failures = 0
        """Segments that could not be read back."""
        self.changes = 0
        """Counts what changes an answer: a segment came, or could not come."""

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""
        run = self._ledger().catalogue.run
        if not run:
            return self._ledger().log_start
        return self._archived.start(run[0].header.previous).log_end

    def receipts(self) -> list[Receipt]:
        """Return the receipts of the part that is not here, ascending."""
        run = self._ledger().catalogue.run
        return self._archived.chain(run[0].header.previous) if run else []

    def holds_away(self, offset: int) -> bool:
        """Tell whether an offset lies in the archive's part."""
        return self.log_start <= offset < self._ledger().log_start

    def bytes_away(self, offset: int) -> int:
        """Return the bytes of the archive's segments from the one that holds an offset on."""
        return sum(each.size for each in self.receipts() if each.end.log_end > offset)

    def read_from(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        """Return encoded batches, as `Ledger.read_from` does; all from one segment.

        Raises SegmentAwayError, HistoryMissingError, DamagedLedgerError.
        """
        ledger = self._ledger()
        if offset >= ledger.log_start:
            return ledger.read_from(offset, max_bytes, up_to)
        receipt, catalogue = self._found(offset)
        try:
            return catalogue.read(offset, max_bytes, min(up_to, receipt.end.log_end))
        except DamagedLedgerError:
            # The archive has the segment: what went bad is the copy in the cache.
            self._recalled.damaged(receipt)
            raise SegmentAwayError(offset, ledger.log_start) from None

    def segments(self) -> list[tuple[int, int]]:
        """Return (base offset, bytes) of all segments, the archive's first. Raises OSError."""
        ledger = self._ledger()
        away = [(each.base_offset, each.size) for each in self.receipts()]
        return away + [(base, ledger.segment_size(base)) for base in ledger.segment_bases()]

    def read_segment(self, base_offset: int, position: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment, unverified if it is one of the ledger's.

        Raises SegmentAwayError, HistoryMissingError, OSError.
        """
        ledger = self._ledger()
        if base_offset >= ledger.log_start:
            return ledger.read_segment(base_offset, position, length)
        receipt, _ = self._found(base_offset)
        return self._disk.read(self._recalled.path(receipt), position, length)

    def _found(self, offset: int) -> tuple[Receipt, Catalogue]:
        start = self._ledger().log_start
        receipt = self._receipt_at(offset)
        if receipt is None or self._access is None:
            raise HistoryMissingError(offset, start)
        catalogue = self._recalled.get(receipt)
        if catalogue is None:
            raise SegmentAwayError(offset, start)
        return receipt, catalogue

    def _receipt_at(self, offset: int) -> Receipt | None:
        for receipt in self.receipts():
            if receipt.base_offset <= offset < receipt.end.log_end:
                return receipt
        return None

    # -- reading back -----------------------------------------------------------------------

    def clear(self) -> None:
        """Remove what an earlier process has left in the cache. Raises OSError."""
        self._recalled.clear()

    def stop(self) -> None:
        """Read nothing back any more. Whoever waits is answered."""
        self._job.stop()
        self._running = False
        for base in list(self._waiting):
            self._answer(base, "this controller is stopping")

    def recall(self, offset: int, on_done: OnRecalled) -> None:
        """Bring the segment that holds an offset into the cache, then call back."""
        receipt = self._receipt_at(offset)
        if receipt is None or self._access is None:
            # The segment is here by now, or was never in the archive: reading says which.
            on_done("")
            return
        waiting = self._waiting.setdefault(receipt.base_offset, _Waiting(receipt))
        where, wait_s = self._access.location, self._config.archive_wait_s
        late = f"the archive {where} has not answered in {wait_s:g} seconds; ask again"
        timer = self._clock.call_later(wait_s, lambda: self._give_up(waiting, call, late))
        call = (on_done, timer)
        waiting.calls.append(call)
        if not self._running:
            self._running = True
            self._job.start(self._steps(self._access))

    def _give_up(self, waiting: _Waiting, call: tuple[OnRecalled, Timer], why: str) -> None:
        if call in waiting.calls:
            waiting.calls.remove(call)
            self.changes += 1
            call[0](why)

    def _answer(self, base: int, why: str) -> None:
        waiting = self._waiting.pop(base)
        self.changes += 1
        for on_done, timer in waiting.calls:
            timer.cancel()
            on_done(why)

    def _steps(self, access: ArchiveAccess) -> Steps[None]:
        while self._waiting:
            base, waiting = next(iter(self._waiting.items()))
            why = ""
            try:
                if self._recalled.get(waiting.receipt) is None:
                    yield from self._bring(access, waiting.receipt)
            except (ArchiveUnavailableError, LedgerError) as error:
                why = str(error)
            except OSError as error:
                why = refused_here(error)
            if why:
                self.failures += 1
                self._log.error("recall_failed", base_offset=base, why=why)
            self._answer(base, why)
        self._running = False

    def _bring(self, access: ArchiveAccess, receipt: Receipt) -> Steps[None]:
        """Read one segment back. Raises ArchiveUnavailableError, LedgerError, OSError."""
        start, end = receipt.start, receipt.end
        pull = SegmentPull(
            self._disk,
            self._config.cluster_id,
            start.log_end,
            end.log_end,
            end.head,
            previous=start,
            folder=RECALLED_FOLDER,
        )
        try:
            pull.discard()
            try:
                yield from access.fill(pull)
            except LedgerError as error:
                pull.discard()
                file = f"{access.location}/{segment_name(start.log_end)}"
                place, reason = getattr(error, "position", 0), getattr(error, "reason", str(error))
                at = getattr(error, "offset", start.log_end)
                raise ArchiveDamagedError(file, place, at, reason) from None
            yield from self._job.written(partial(pull.place))
        finally:
            pull.close()
        self._recalled.admit(receipt)
        self.recalls += 1
        self._log.info("segment_recalled", base_offset=start.log_end, bytes=receipt.size)
