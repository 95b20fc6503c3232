"""What Spark's jobs read: one log up to an end, from where it can be counted.

Rule: the end is fixed before the first query, so all queries of a job see one log. A query reads
only the types of records and the columns that it needs, through options of the source. Spark keeps
what a job needs more than once, in memory or on disk, until the log is closed. The few records that
show where transactions, topics and partitions begin are read once for all queries. A log that was
cut is counted from its first checkpoint; no transaction reaches across one.
"""

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Final, Self

from pyspark.sql import DataFrame, SparkSession

from audit.places.replicas import NoLogError
from audit.reading.first_checkpoint import first_checkpoint
from audit.spark.folds.checkpoint import checkpoint_rows
from audit.spark.folds.slices import TOPIC
from audit.spark.folds.transactions import MARKERS, Marker, Spans, counted, markers, spans
from audit.spark.jobs.frame_jobs import topic_names
from audit.spark.source import log_source
from audit.spark.source.reading import Piece, absolute, open_longest, plan, sound_end
from snapshots.store import LoadedCheckpoint

_SETTLING: Final = ("offset", "base_offset", "timestamp_ms", "type")
_LANDMARKS: Final = (*MARKERS, TOPIC)
_OF_LANDMARKS: Final = (*Marker._fields, "topic_id", "topic_name")


class AuditedLog:
    """The log that a question is about. Raises NoLogError, LedgerError, CheckpointError."""

    def __init__(
        self, spark: SparkSession, locations: Sequence[str], up_to: int | None = None
    ) -> None:
        self.spark = spark
        self._locations = [*map(absolute, locations)]
        self._replica, self._reader = open_longest(locations)
        whole = sound_end(self._replica, self._reader)
        if up_to is not None and up_to > whole:
            raise NoLogError(
                f"{self._replica.location}: the log ends at offset {whole}, before {up_to}."
            )
        self.end = whole if up_to is None else up_to
        self.start = self._reader.log_start
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for frame in self._kept:
            frame.unpersist()

    def kept(self, frame: DataFrame) -> DataFrame:
        """Let Spark keep a frame after it is computed, as long as the log is open."""
        self._kept.append(frame.persist())
        return frame

    def raw(
        self, columns: Sequence[str], types: Sequence[str] | None = None, start: int | None = None
    ) -> DataFrame:
        """Return bronze from `start`, or from the beginning of the log."""
        return log_source.read_log(
            self.spark, self._locations, up_to=self.end, start=start, columns=columns, types=types
        )

    @cached_property
    def _landmarks(self) -> DataFrame:
        """The records that begin and end transactions, topics and partitions: few rows."""
        return self.kept(self.raw(_OF_LANDMARKS, _LANDMARKS))

    @cached_property
    def spans(self) -> Spans:
        """The log's transactions."""
        return spans(markers(self._landmarks))

    def settled(self, columns: Sequence[str], types: Sequence[str] | None = None) -> DataFrame:
        """Return the records that count, with the batch that settles each."""
        wanted = tuple(dict.fromkeys((*columns, *_SETTLING)))
        return counted(self.raw(wanted, types, self.counted_from), self.spans)

    def pieces(self, wanted: int) -> list[Piece]:
        """Return what tasks read, from where counting begins to the end."""
        start = self.counted_from
        return plan(self._locations, self._replica, self._reader, start, self.end, wanted)

    @cached_property
    def checkpoint(self) -> LoadedCheckpoint | None:
        """The checkpoint from which a cut log is counted; None for a log from offset 0."""
        if self.start == 0:
            return None
        return first_checkpoint(self._replica, self._reader, self.end)

    @property
    def counted_from(self) -> int:
        """The base offset of the first batch that counts."""
        return 0 if self.checkpoint is None else self.checkpoint.header.offset

    @cached_property
    def facts(self) -> DataFrame | None:
        """The checkpoint's records as settled rows of bronze; None without a checkpoint."""
        if self.checkpoint is None:
            return None
        return checkpoint_rows(self.spark, self.checkpoint)

    def with_facts(self, settled: DataFrame, types: Sequence[str]) -> DataFrame:
        """Add the checkpoint's records of these types."""
        if self.facts is None:
            return settled
        facts = self.facts.where(self.facts["type"].isin(*types)).select(*settled.columns)
        return settled.unionByName(facts)

    @cached_property
    def names(self) -> DataFrame:
        """The names of topics, including those in the checkpoint."""
        columns = ("offset", "type", "topic_id", "topic_name")
        raw = self._landmarks.select(*columns)
        try:
            facts = self.facts
        except NoLogError:
            facts = None  # without a checkpoint, only the names in the log are known
        if facts is not None:
            known = facts.where(facts["type"] == TOPIC).select(*columns)
            raw = raw.unionByName(known)
        return self.kept(topic_names(raw))

    def horizon_ms(self) -> int:
        """Return the timestamp of the last batch; without batches, that of the checkpoint."""
        first = self.counted_from
        for batch in self._reader.batches(max(self.end - 1, first), self.end):
            return batch.header.timestamp_ms
        return 0 if self.checkpoint is None else self.checkpoint.header.timestamp_ms
