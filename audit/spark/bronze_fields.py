"""Which fields of which records fill which columns of bronze (`Record.COLUMNS`).

Rule: a record's class declares which columns it fills; the others are null. Codes for "unchanged"
are null. The flags of a registration use the codes of a registration change: `fenced` is 1 (fenced)
or -1 (unfenced), `in_controlled_shutdown` is 1 or 0. The column `name` holds names of things other
than topics, brokers and config keys. Uuids are text, and secrets are starred.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from metadata.records import RECORD_CLASSES, Record
from metadata.records.declaring import REDACTED
from metadata.records.schema import fields_of
from metadata.uuids import uuid_text

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
