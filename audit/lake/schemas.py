"""The Arrow form of kept tables, and from a job's rows to it.

Rule: the schema is made from `audit.tables` alone, so every writer and every reader has the same.
Values change in two ways only: milliseconds become timestamps, and days dates. A time after the
year 9999, which no tool can show, is kept as that year's last moment.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from audit.tables import (
    BOOL,
    BYTES,
    DATE,
    INT,
    INTS,
    TEXT,
    TIME,
    AuditTable,
    Column,
    kept_form,
)

_TYPES: Final = {
    TEXT: pa.string(),
    INT: pa.int64(),
    INTS: pa.list_(pa.field("element", pa.int64())),
    BOOL: pa.bool_(),
    BYTES: pa.binary(),
    TIME: pa.timestamp("us", tz="UTC"),
    DATE: pa.date32(),
}
_LAST_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""


def arrow_schema(table: AuditTable) -> pa.Schema:
    """Return the schema of a table as it is kept. A column that is never null says so."""
    return _schema(kept_form(table).columns)


def to_kept(rows: pa.RecordBatch | pa.Table, table: AuditTable) -> pa.Table:
    """Return rows of a job as they are kept. They need the table's columns; others are dropped.

    Numbers may be narrower than 64 bits, and a column that is a date or a timestamp already stays
    as it is. Raises ValueError if a column is missing, or is null and must not be.
    """
    missing = [column.name for column in table.columns if column.name not in rows.schema.names]
    if missing:
        raise ValueError(f"rows of {table.name} need the column {missing[0]}")
    schema = arrow_schema(table)
    columns = [
        _kept_values(rows.column(column.name), column, field)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def rows_to_kept(rows: Iterable[Sequence[Any]], table: AuditTable) -> pa.Table:
    """Return rows of a job, as tuples in the order of its columns, as they are kept."""
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    arrays = [
        pa.array(values, _TYPES[column.kind])
        for values, column in zip(columns, table.columns, strict=True)
    ]
    return to_kept(pa.Table.from_arrays(arrays, names=[c.name for c in table.columns]), table)


def _schema(columns: Iterable[Column]) -> pa.Schema:
    return pa.schema(
        [pa.field(column.name, _TYPES[column.kind], nullable=column.nullable) for column in columns]
    )


def _kept_values(values: Any, column: Column, field: pa.Field) -> Any:
    if not field.nullable and values.null_count:
        raise ValueError(f"the column {column.name} is null in {values.null_count:,} rows")
    if values.type.equals(field.type):
        return values
    if pa.types.is_timestamp(field.type) and pa.types.is_integer(values.type):
        shown = pc.min_element_wise(values.cast(pa.int64()), _LAST_MS, skip_nulls=False)
        return shown.cast(pa.timestamp("ms", tz="UTC")).cast(field.type)
    return values.cast(field.type)
