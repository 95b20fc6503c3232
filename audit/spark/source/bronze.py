"""Bronze: the log as a table, one row for each record, uninterpreted and complete.

Rule: a record's class declares which columns it fills (`Record.COLUMNS`); a column is null if the
record has no such field or leaves it unchanged. Who, when and why are the batch's, repeated for
each of its records. Uuids are text. Secrets are starred, except in `record`, which holds the
record's bytes. Columns that are costly to build (`record`, `fields`) are built only on request.

The flags of a registration use the codes of a registration change: `fenced` is 1 (fenced) or -1
(unfenced), `in_controlled_shutdown` is 1 or 0. The column `name` holds names of things other than
topics, brokers and config keys.

Columns are built for a chunk of batches at a time, in one Arrow batch for each type of record. So a
column of an Arrow batch is one comprehension over one field, or all null. The rows of a chunk are
therefore not in the order of their offsets.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from audit.questions.subjects import fields_text
from ledger.batch import Batch, BatchHeader, array_head
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records, encode_record
from metadata.messages.records_json import record_type_name
from metadata.records import RECORD_CLASSES, Record
from metadata.records.declaring import REDACTED
from metadata.records.schema import fields_of
from metadata.uuids import uuid_text
from runtime.loop.collection import resting

Values = Callable[[Sequence[Any]], Iterable[Any]]
"""From records of one type to the values of one column."""

_text = lru_cache(maxsize=65_536)(uuid_text)


def _values(kind: type[Record], source: str | Callable[[Any], Any]) -> Values:
    if not isinstance(source, str):
        return lambda records: list(map(source, records))
    get = attrgetter(source)
    if kind.secret_fields is not Record.secret_fields:
        return lambda records: [
            REDACTED if source in record.secret_fields() else get(record) for record in records
        ]
    if next(f.type_name for f in fields_of(kind) if f.name == source) == "uuid":
        return lambda records: [_text(get(record)) for record in records]
    return lambda records: list(map(get, records))


FIELDS: Final[dict[type[Record], dict[str, Values]]] = {
    kind: {column: _values(kind, source) for column, source in kind.COLUMNS.items()}
    for kind in RECORD_CLASSES
    if kind.COLUMNS
}


CHUNK_RECORDS: Final = 65_536
"""Records that are decoded before they are passed on. It limits memory."""

_INTS: Final = pa.list_(pa.field("element", pa.int32()))
_ARROW: Final = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "array<int>": _INTS,
}

_BATCH_COLUMNS: Final[dict[str, tuple[str, Callable[[BatchHeader], object]]]] = {
    "timestamp_ms": ("bigint", lambda header: header.timestamp_ms),
    "day": ("string", lambda header: day_of(header.timestamp_ms)),
    "epoch": ("bigint", lambda header: header.epoch),
    "base_offset": ("bigint", lambda header: header.base_offset),
    "end_offset": ("bigint", lambda header: header.end_offset),
    "auth_method": ("string", lambda header: header.provenance.auth_method),
    "client_address": ("string", lambda header: header.provenance.client_address),
    "acted_as": ("string", lambda header: header.acted_as),
    "client_id": ("string", lambda header: header.provenance.client_id),
    "principal": ("string", lambda header: header.provenance.principal),
    "on_behalf_of": ("string", lambda header: header.provenance.on_behalf_of),
    "request_id": ("string", lambda header: _request_id(header.provenance.request_id)),
    "operation": ("string", lambda header: header.provenance.operation),
    "reason": ("string", lambda header: header.provenance.reason),
}
_FIELD_COLUMNS: Final = {
    "topic_id": "string",
    "topic_name": "string",
    "partition": "int",
    "broker_id": "int",
    "leader": "int",
    "leader_recovery_state": "int",
    "isr": "array<int>",
    "replicas": "array<int>",
    "fenced": "int",
    "in_controlled_shutdown": "int",
    "broker_epoch": "bigint",
    "resource_type": "int",
    "config_key": "string",
    "config_value": "string",
    "name": "string",
}
_COSTLY: Final[dict[str, tuple[str, Callable[[Record], object]]]] = {
    "record": ("binary", encode_record),
    "fields": ("string", fields_text),
}

BRONZE_COLUMNS: Final = {
    "offset": "bigint",
    **{name: kind for name, (kind, _) in _BATCH_COLUMNS.items()},
    "type": "string",
    "version": "int",
    **_FIELD_COLUMNS,
}
"""Name and Spark type of the columns that `read_log` returns by default."""
COSTLY_COLUMNS: Final = {name: kind for name, (kind, _) in _COSTLY.items()}
"""Only on request: the record's canonical bytes; its fields as JSON, with secrets starred."""
ALL_COLUMNS: Final = BRONZE_COLUMNS | COSTLY_COLUMNS

TYPE_NAMES: Final = {record_type_name(cls): cls for cls in RECORD_CLASSES}
"""The values of the column `type`, and the class that each means."""


class UnknownColumnError(ValueError):
    """A column or type that bronze doesn't have. The message lists the valid ones."""


def ddl(columns: Iterable[str] = BRONZE_COLUMNS) -> str:
    """Return columns in the form of Spark's `.schema(…)`. Raises UnknownColumnError."""
    columns = list(columns)
    _check(columns, ALL_COLUMNS, "bronze has no column")
    return ", ".join(f"{name} {ALL_COLUMNS[name]}" for name in columns)


def classes_of(types: Iterable[str]) -> frozenset[type[Record]]:
    """Return the record classes for names of types. Raises UnknownColumnError."""
    types = list(types)
    _check(types, TYPE_NAMES, "there is no record type")
    return frozenset(TYPE_NAMES[name] for name in types)


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of these columns, as Spark expects it."""
    _check(columns, ALL_COLUMNS, "bronze has no column")
    return pa.schema([(name, _ARROW[ALL_COLUMNS[name]]) for name in columns])


def bronze_rows(
    batches: Iterable[Batch],
    columns: Sequence[str],
    classes: frozenset[type[Record]] | None = None,
    chunk_records: int = CHUNK_RECORDS,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of batches as Arrow batches of these columns.

    `classes`: only records of these classes. A batch that can't hold one of them is not decoded.
    The garbage collector is off meanwhile, because a chunk is many objects without a cycle. Raises
    LedgerError, and what `batches` raises.
    """
    schema = arrow_schema(columns)
    heads = None if classes is None else tuple(map(_head, classes))
    with resting():
        chunk: list[Batch] = []
        count = 0
        for batch in batches:
            if heads is not None and not any(head in batch.records for head in heads):
                continue
            chunk.append(batch)
            count += batch.header.count
            if count >= chunk_records:
                yield from _chunk_rows(chunk, schema, classes)
                chunk, count = [], 0
        if chunk:
            yield from _chunk_rows(chunk, schema, classes)


def _chunk_rows(
    chunk: list[Batch], schema: pa.Schema, classes: frozenset[type[Record]] | None
) -> Iterator[pa.RecordBatch]:
    by_class: dict[type[Record], list[int]] = {}
    records: list[Record] = []
    for batch in chunk:
        records += _records_of(batch)
    for place, record in enumerate(records):
        places = by_class.get(type(record))
        if places is None:
            by_class[type(record)] = [place]
        else:
            places.append(place)
    headers = [batch.header for batch in chunk]
    counts = [header.count for header in headers]
    batch_of = np.repeat(np.arange(len(chunk)), counts)
    firsts = np.fromiter((header.base_offset for header in headers), np.int64, len(chunk))
    offsets = np.repeat(firsts - np.cumsum([0, *counts[:-1]]), counts) + np.arange(len(records))
    of_batches = {
        field.name: pa.array(map(_BATCH_COLUMNS[field.name][1], headers), field.type)
        for field in schema
        if field.name in _BATCH_COLUMNS
    }
    for record_class, places in by_class.items():
        if classes is not None and record_class not in classes:
            continue
        mine = [records[place] for place in places]
        at = np.array(places)
        rows = pa.array(batch_of[at])
        columns = [
            of_batches[field.name].take(rows)
            if field.name in of_batches
            else pa.array(offsets[at])
            if field.name == "offset"
            else _column(field, record_class, mine)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _head(record_class: type[Record]) -> bytes:
    """Return the bytes that every record of a class begins with: number of fields, and kind.

    A batch without these bytes holds no record of the class. A batch with them must be decoded,
    because they may also occur inside another record.
    """
    kind = msgspec.msgpack.encode(record_class.__struct_config__.tag)
    return array_head(1 + len(record_class.__struct_fields__)) + kind


def _records_of(batch: Batch) -> list[Record]:
    try:
        return decode_records(batch.records)
    except RecordDecodeError as error:
        raise LedgerError(f"the batch at offset {batch.header.base_offset}: {error}") from None


def _column(field: pa.Field, record_class: type[Record], records: list[Record]) -> pa.Array:
    if field.name == "type":
        return pa.repeat(record_type_name(record_class), len(records))
    if field.name == "version":
        return pa.repeat(pa.scalar(record_class.VERSION, pa.int32()), len(records))
    if field.name in _COSTLY:
        return pa.array(map(_COSTLY[field.name][1], records), field.type, size=len(records))
    values = FIELDS.get(record_class, {}).get(field.name)
    if values is None:
        return pa.nulls(len(records), field.type)
    return pa.array(values(records), field.type)


def _check(asked: Sequence[str], known: Iterable[str], what: str) -> None:
    known = list(known)
    for name in asked:
        if name not in known:
            raise UnknownColumnError(f"{what} {name!r}; there are {', '.join(known)}")


@lru_cache(maxsize=4096)
def _day(days: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days)).isoformat()


def day_of(timestamp_ms: int) -> str:
    """Return the UTC date of a time; for times after the year 9999, the last day of that year."""
    return _day(min(timestamp_ms // 86_400_000, _LAST_DAY))


_LAST_DAY: Final = (dt.date.max - dt.date(1970, 1, 1)).days


def _request_id(request_id: bytes) -> str:
    return uuid_text(request_id) if request_id else ""
