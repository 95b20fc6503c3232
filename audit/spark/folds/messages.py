"""Messages: what tasks hand to each other and to the driver, through the only shuffle of a job.

Rule: a message is all rows of a piece of the log for one receiver, as one value. So Spark moves a
few large values, and never handles a record by itself (ADR 0064).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

MESSAGE_DDL: Final = "part int, piece int, kind string, content binary"
_SCHEMA: Final = pa.schema(
    [("part", pa.int32()), ("piece", pa.int32()), ("kind", pa.string()), ("content", pa.binary())]
)
DRIVER: Final = -1
"""The receiver of what is small."""

REPORT: Final = "report"
ROWS: Final = "rows"
"""Records of the part's partitions, and those that concern every part."""
FEW: Final = "few"
"""Records for the driver."""
COUNTS: Final = "counts"
"""Who changed what, for the driver."""


class Message(NamedTuple):
    """A row of the table that Spark shuffles."""

    part: int
    piece: int
    kind: str
    content: bytes


def two_stages(
    spark: SparkSession,
    tasks: int,
    parts: int,
    sliced: Callable[[int], Iterable[Message]],
    folded: Callable[[Iterator[Message]], Iterable[pa.RecordBatch]],
    schema: str | StructType = MESSAGE_DDL,
) -> DataFrame:
    """Return what the second stage of a job gives, as an unordered DataFrame that isn't run yet.

    `sliced`: from a task's number to its messages. `folded`: from the messages to some parts, or to
    the driver, to rows of `schema`. Spark pickles both.
    """

    def slices(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from message_batches(sliced(number))

    def folds(batches: Iterator[Any]) -> Iterator[Any]:
        yield from folded(_messages_of(batches))

    numbers = spark.range(0, tasks, 1, tasks)
    by_part = numbers.mapInArrow(slices, MESSAGE_DDL).repartitionById(parts + 1, "part")
    return by_part.mapInArrow(folds, schema)


def message_batches(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Yield each message as a batch of its own, because it may be large."""
    for message in messages:
        arrays = [pa.array([v], field.type) for v, field in zip(message, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _messages_of(batches: Iterator[Any]) -> Iterator[Message]:
    """Yield the messages in Arrow batches."""
    for batch in batches:
        yield from map(Message._make, zip(*(c.to_pylist() for c in batch.columns), strict=True))
