"""The log as a stream: micro-batches between places in the log.

Rule: the stream's offset is the log's offset and the chain hash there. Both ends of a micro-batch
are boundaries of batches, and Spark writes them into its checkpoint before it reads the
micro-batch. So after a kill the same batches are read again, byte for byte, and nothing is added
twice. The hash ensures that a checkpoint continues only with the log that it began with.

A transaction may be open at the end of a micro-batch. Rows are raw records; the consumer that
settles them must keep those of an open transaction.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from audit.places.replicas import Replica
from audit.spark.reading import check_continues, open_longest, plan, sound_end
from audit.spark.source_query import SourceOptions, checked_range, read_rows
from ledger.reader import LedgerReader

Place = dict[str, Any]
"""`offset` and, in hexadecimal, `head`: the hash of the batch that ends there. Stored as JSON."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in a process beside the driver. Only `read` runs in tasks, on a copy."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self._opened: tuple[Replica, LedgerReader] | None = None
        self._target: int | None = None
        """The offset where a query with `availableNow` ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open log, because a task opens its own."""
        return self.__dict__ | {"_opened": None}

    def initialOffset(self) -> Place:  # noqa: N802 - Spark's
        replica, reader = self._log()
        start, _ = checked_range(replica, reader, self._options.start, self._options.start)
        return self._place(self._boundary(start))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        self._target = self._end()

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:  # noqa: N802 - Spark's
        begin = start["offset"]
        end = self._end() if self._target is None else self._target
        self._check_continues(start, end)
        if isinstance(limit, ReadMaxRows) and end - begin > limit.max_rows:
            end = max(self._boundary(begin + limit.max_rows), self._batch_end(begin))
        return self._place(end)

    def partitions(self, start: Place, end: Place) -> list[InputPartition]:
        replica, reader = self._log()
        if reader.log_end < end["offset"]:  # after a restart the checkpoint may be ahead of us
            replica, reader = self._log(again=True)
        self._check_continues(end, sound_end(replica, reader))
        return [
            *plan(
                self._options.places,
                replica,
                reader,
                start["offset"],
                end["offset"],
                self._options.pieces,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._columns, self._options.classes)

    def _end(self) -> int:
        replica, reader = self._log(again=True)
        return sound_end(replica, reader)

    def _log(self, *, again: bool = False) -> tuple[Replica, LedgerReader]:
        """Return the log as it was last opened, or opened again."""
        if again or self._opened is None:
            self._opened = open_longest(self._options.places)
        return self._opened

    def _place(self, offset: int) -> Place:
        return {"offset": offset, "head": self._head(offset).hex()}

    def _head(self, end_offset: int) -> bytes:
        """Return the chain hash at the end of a batch or the log's start; b"" elsewhere."""
        return self._log()[1].hash_at(end_offset) or b""

    def _check_continues(self, place: Place, end: int) -> None:
        """Refuse to continue with another log than the one that was read. Raises NoLogError."""
        check_continues(*self._log(), place["offset"], place["head"], end)

    def _boundary(self, offset: int) -> int:
        """Return the base offset of the batch that holds an offset; at the log's end, that end."""
        reader = self._log()[1]
        if offset >= reader.log_end:
            return reader.log_end
        return reader.catalogue.head_at(offset)[1].base_offset

    def _batch_end(self, offset: int) -> int:
        return self._log()[1].catalogue.head_at(offset)[1].end_offset
