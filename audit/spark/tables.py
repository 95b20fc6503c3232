"""From a DataFrame to rows as both engines return them: columns, order and values of audit.tables.

Rule: a job's DataFrame has exactly its table's columns. Rows leave Spark as plain tuples ordered by
the table's key; lists of numbers become tuples. Text is ordered by code points: Spark compares the
UTF-8 bytes, which gives the same order.
"""

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from audit.tables import BOOL, INT, INTS, TEXT, AuditTable

DAY_MS: Final = 86_400_000

_TYPES: Final[dict[str, DataType]] = {
    TEXT: StringType(),
    INT: LongType(),
    INTS: ArrayType(LongType()),
    BOOL: BooleanType(),
}


def schema_of(table: AuditTable) -> StructType:
    """Return the table's columns as a Spark schema."""
    return StructType(
        [StructField(column.name, _TYPES[column.kind], nullable=True) for column in table.columns]
    )


def conformed(frame: DataFrame, table: AuditTable) -> DataFrame:
    """Return the table's columns in their order and types; drop all others."""
    return frame.select(
        *(
            F.col(column.name).cast(_TYPES[column.kind]).alias(column.name)
            for column in table.columns
        )
    )


def rows_of(frame: DataFrame, table: AuditTable) -> list[tuple[Any, ...]]:
    """Collect a job's rows in the form of `audit.embedded.run_job`."""
    return ordered((_plain(row) for row in conformed(frame, table).collect()), table)


def ordered(rows: Iterable[tuple[Any, ...]], table: AuditTable) -> list[tuple[Any, ...]]:
    """Sort rows by the table's key."""
    return sorted(rows, key=lambda row: row[: table.key])


def day_of(ms: Column) -> Column:
    """Return the UTC date of a time in ms; the session's time zone is UTC (audit_session)."""
    return F.date_format(F.timestamp_millis(ms), "yyyy-MM-dd")


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
