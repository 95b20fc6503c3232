"""Projected logs over real ledgers on a simulated disk, for tests of the projection."""

from collections.abc import Generator, Sequence
from typing import TypeVar

import structlog

from kafka_listener.projection.batch_projection import BatchProjection, ProjectedBatch
from kafka_listener.projection.clear_values import ClearValues
from kafka_listener.projection.log_facts import FIRST_LEVEL
from kafka_listener.projection.projected_log import ProjectedLog
from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.ledger import Accepted, Ledger
from metadata.codec import encode_records
from metadata.records import Record
from metadata.sealing import ClusterKey
from runtime.simulated.clock import SimulatedClock
from tests.histories import HistoryBatch
from tests.unit.ledger.ledger_world import CLUSTER, Node

T = TypeVar("T")


def sealed(batches: Sequence[HistoryBatch]) -> list[Batch]:
    """Return the chained batches of a history."""
    made: list[Batch] = []
    mark = LogMark.beginning(CLUSTER)
    for one in batches:
        header = BatchHeader(
            one.base_offset,
            len(one.records),
            one.epoch,
            one.timestamp_ms,
            Provenance(),
            mark.head,
        )
        made.append(seal(header, encode_records(one.records)))
        mark = mark.after(made[-1])
    return made


def batch_of(base_offset: int, *records: Record, epoch: int = 1) -> HistoryBatch:
    """Return a batch with these records."""
    return HistoryBatch(base_offset, epoch, 1_700_000_000_000 + base_offset, records)


class ProjectedWorld:
    """A ledger, and a projected log that follows it."""

    def __init__(
        self, *, start: int = 0, level: int = FIRST_LEVEL, key: ClusterKey | None = None
    ) -> None:
        self.node = Node()
        self.ledger: Ledger = self.node.open()
        self.grown: list[int] = []
        assert self.node.process is not None
        self.log = ProjectedLog(
            SimulatedClock(self.node.process),
            BatchProjection(ClearValues(key)),
            lambda: self.grown.append(self.log.end),
            structlog.wrap_logger(self.node.logger, processors=[]),
        )
        self.log.restart(self.ledger, start, level)

    def accept(self, batches: Sequence[Batch]) -> None:
        """Put batches into the ledger. The projected log does not know yet."""
        for batch in batches:
            accepted = self.ledger.accept(batch.header.epoch, batch)
            assert isinstance(accepted, Accepted)

    def follow(self) -> None:
        """Let the projected log follow to the ledger's end."""
        self.log.follow(self.ledger.log_end)
        self.node.world.run_for(1.0)

    def read(self, offset: int, max_bytes: int = 1 << 30) -> list[ProjectedBatch]:
        """Return what a fetch from an offset reads."""
        return list(run(self.log.read(offset, max_bytes)))


def run(steps: Generator[None, None, T]) -> T:
    """Run work to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: T = done.value
            return value
