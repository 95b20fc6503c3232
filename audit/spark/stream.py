"""The log as a stream: micro-batches between offsets of the log.

Rule: a stream's offset is the log's. Both ends of a micro-batch are batches' boundaries, written
into Spark's checkpoint before the micro-batch is read: so what is read again after a kill is the
same batches, byte for byte, and nothing is added twice. Nothing that is appended later can change
what lies before an offset.

An open transaction may reach over a micro-batch's end: rows are raw records, and whoever settles
them keeps what is open.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from audit.places import NoLogError, Replica
from audit.spark.reading import open_longest, plan, sound_end
from audit.spark.source import SourceOptions, read_rows
from ledger.reader import LedgerReader

_OFFSET: Final = "offset"


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process beside the driver; only `read` runs in tasks, on a copy."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns
        self._opened: tuple[Replica, LedgerReader] | None = None
        self._target: int | None = None
        """Where a query with `availableNow` ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open log behind: a task opens its own."""
        return self.__dict__ | {"_opened": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        _, reader = self._log()
        start = reader.log_start if self._options.start is None else self._options.start
        if not reader.log_start <= start <= reader.log_end:
            raise NoLogError(
                f"startOffset is {start}, and the log reaches from {reader.log_start} to "
                f"{reader.log_end}"
            )
        return {_OFFSET: self._boundary(start)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        most = self._options.records_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        self._target = self._end()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        begin = start[_OFFSET]
        end = self._end() if self._target is None else self._target
        if end < begin:
            raise NoLogError(
                f"the stream has read up to offset {begin}, and {self._log()[0].location} ends at "
                f"{end}: it is shorter than it was, or another log; choose another checkpoint "
                "folder for another log"
            )
        if isinstance(limit, ReadMaxRows) and end - begin > limit.max_rows:
            end = max(self._boundary(begin + limit.max_rows), self._batch_end(begin))
        return {_OFFSET: end}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        return {_OFFSET: self._log()[1].log_end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        replica, reader = self._log()
        if reader.log_end < end[_OFFSET]:  # restarted: the checkpoint knows more than we saw
            replica, reader = self._log(again=True)
        options = self._options
        return [
            *plan(options.places, replica, reader, start[_OFFSET], end[_OFFSET], options.pieces)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._columns, self._options.classes)

    def _end(self) -> int:
        replica, reader = self._log(again=True)
        return sound_end(replica, reader)

    def _log(self, *, again: bool = False) -> tuple[Replica, LedgerReader]:
        """Return the log, as it was seen last or as it is now."""
        if again or self._opened is None:
            self._opened = open_longest(self._options.places)
        return self._opened

    def _boundary(self, offset: int) -> int:
        """Return the base offset of the batch that holds an offset, the log's end at its end."""
        _, reader = self._log()
        if offset >= reader.log_end:
            return reader.log_end
        return reader.catalogue.head_at(offset)[1].base_offset

    def _batch_end(self, offset: int) -> int:
        return self._log()[1].catalogue.head_at(offset)[1].end_offset
