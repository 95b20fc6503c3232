"""This controller's log as Kafka's brokers fetch it.

It follows the committed log: each batch is projected once, goes into the digest, and is kept while
it is among the newest. Older parts are projected again from the ledger, with the same bytes. So
memory is bounded: by the newest bytes, and by a few numbers for each transaction that did not end.

It begins where the image was loaded, because a checkpoint holds what the projection has to know:
the level of metadata.version, and that no transaction is open. Brokers that need older offsets load
a snapshot. The end stands still while a transaction is open (ADR 0037, 0071).
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from kafka_listener.projection.batch_projection import BatchProjection, ProjectedBatch
from kafka_listener.projection.digest import DigestChain
from kafka_listener.projection.log_facts import LogFacts
from ledger.batch import BATCH_BYTES_MAX, BatchHeader, parse
from ledger.errors import LedgerError
from metadata.codec import decode_records
from metadata.records import Record
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork

_KEPT_BYTES_MAX: Final = 4 * BATCH_BYTES_MAX
"""The newest projected batches are kept up to so many bytes, and always the last one."""
_READ_BYTES: Final = 256 * 1024
_AGAIN_S: Final = 1.0
"""Pause after the ledger could not be read."""


class LedgerView(Protocol):
    """What is read of a ledger."""

    @property
    def log_end(self) -> int:
        """The offset of the next record."""

    def read_from(self, offset: int, max_bytes: int, up_to: int) -> list[bytes]:
        """Return encoded batches from the one that holds `offset`."""


class ProjectedLog:
    """The projected log of one controller."""

    def __init__(
        self,
        clock: Clock,
        projection: BatchProjection,
        on_grown: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_grown` is called when `end` has moved. Nothing is here before `restart`."""
        self._clock = clock
        self._projection = projection
        self._on_grown = on_grown
        self._log = log
        self.digests = DigestChain()
        self._facts = LogFacts()
        self._ledger: LedgerView | None = None
        self._committed = 0
        self._kept: deque[ProjectedBatch] = deque()
        self._kept_bytes = 0
        self._work: SlicedWork | None = None
        self._fails = False
        self.start_epoch = 0
        """The epoch of the last batch before `start`; 0: there is none."""
        self.end = 0
        """The projected high watermark: what is before it is committed and never changes."""

    @property
    def start(self) -> int:
        """The first offset that can be read: the projected log's start."""
        return self._facts.start

    @property
    def is_whole(self) -> bool:
        """Everything that is committed is projected, but for an open transaction."""
        return self._facts.end >= self._committed and self.end >= self._facts.settled

    def restart(self, ledger: LedgerView, start: int, level: int, epoch: int = 0) -> None:
        """Begin at `start`, a batch's end.

        `level` of metadata.version and `epoch` are those before it.
        """
        self.stop()
        self._ledger = ledger
        self.start_epoch = epoch
        self._facts = LogFacts(start, level)
        self._committed = self.end = start
        self._kept.clear()
        self._kept_bytes = 0
        self.digests.restart()

    def move_start(self, start: int, epoch: int) -> None:
        """Show nothing before a batch's end any more, if it is behind `start` and is settled."""
        if self.start < start <= self.end:
            self._facts.forget_before(start)
            self.start_epoch = epoch

    def stop(self) -> None:
        """Follow the log no longer."""
        work, self._work, self._ledger = self._work, None, None
        if work is not None:
            work.cancel()

    def follow(self, committed: int) -> None:
        """Project what is committed up to an offset, now or in the next slices."""
        self._committed = max(self._committed, committed)
        if self._work is None and self._ledger is not None:
            self._work = SlicedWork(self._clock, self._advance(self._ledger), self._advanced)
            self._work.begin(at_once=True)

    def read(
        self, offset: int, max_bytes: int
    ) -> Generator[None, None, tuple[ProjectedBatch, ...]]:
        """Return whole batches from the one that holds `offset`, up to `end`.

        They have about `max_bytes`, but there is at least one if there is any. Pauses every few
        milliseconds, if they have to be projected again. Raises LedgerError, OSError.
        """
        found: list[ProjectedBatch] = []
        size, facts, ledger = 0, self._facts, self._ledger
        # After a pause the log may begin at another place. Then the caller asks again.
        while ledger is not None and facts is self._facts and facts.start <= offset < self.end:
            if self._kept and offset >= self._kept[0].base_offset:
                more = self._newest_from(offset)
            else:
                more = yield from self._again_from(ledger, offset)
            for batch in more:
                if found and size + len(batch.data) > max_bytes:
                    return tuple(found)
                if batch.end_offset > offset:
                    found.append(batch)
                    size += len(batch.data)
                    offset = batch.end_offset
        return tuple(found)

    def _newest_from(self, offset: int) -> list[ProjectedBatch]:
        first = bisect_right(self._kept, offset, key=lambda batch: batch.end_offset)
        return [self._kept[place] for place in range(first, len(self._kept))]

    def _again_from(
        self, ledger: LedgerView, offset: int
    ) -> Generator[None, None, list[ProjectedBatch]]:
        """Project the batch of the ledger that holds an offset again."""
        facts = self._facts
        found: list[ProjectedBatch] = []
        for frame in ledger.read_from(offset, 1, facts.end):
            batch = parse(frame)
            found += yield from self._projection.project_in_steps(
                batch.header, decode_records(batch.records), facts
            )
        return found

    def _advance(self, ledger: LedgerView) -> Generator[None, None, None]:
        """Read and project what is committed. Tries again later if the ledger can't be read."""
        try:
            while self._facts.end < self._committed or self.end < self._facts.settled:
                yield from self._read_more(ledger)
                yield from self._show_settled(ledger)
                self._fails = False
                self._on_grown()
        except (LedgerError, OSError) as error:
            if not self._fails:
                self._log.error("projection_waits", reason=str(error))
            self._fails = True
            self._clock.call_later(_AGAIN_S, lambda: self.follow(self._committed))

    def _advanced(self) -> None:
        self._work = None

    def _read_more(self, ledger: LedgerView) -> Generator[None, None, None]:
        facts = self._facts
        for frame in ledger.read_from(facts.end, _READ_BYTES, self._committed):
            batch = parse(frame)
            records = decode_records(batch.records)
            all_shown = self.end == batch.header.base_offset
            facts.read(batch.header.base_offset, records)
            yield
            if all_shown:
                yield from self._show(batch.header, records)

    def _show_settled(self, ledger: LedgerView) -> Generator[None, None, None]:
        """Project what was held back and is settled now."""
        while self.end < self._facts.settled:
            for frame in ledger.read_from(self.end, _READ_BYTES, self._facts.end):
                batch = parse(frame)
                yield from self._show(batch.header, decode_records(batch.records))

    def _show(self, header: BatchHeader, records: Sequence[Record]) -> Generator[None, None, None]:
        """Add a batch's settled records to the end of the projected log."""
        projected = yield from self._projection.project_in_steps(header, records, self._facts)
        for batch in projected:
            if batch.base_offset >= self.end:
                self._keep(batch)
                self.end = batch.end_offset

    def _keep(self, batch: ProjectedBatch) -> None:
        self.digests.add(batch)
        self._kept.append(batch)
        self._kept_bytes += len(batch.data)
        while self._kept_bytes > _KEPT_BYTES_MAX and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft().data)
