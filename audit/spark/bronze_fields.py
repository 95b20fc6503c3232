"""Which fields of which records fill which columns of bronze: `Record.COLUMNS`, a chunk at a time.

Rule: a class of record says what it fills; what it does not name is null. Codes for "untouched" are
null, and the flags of a registration stand in the words of a registration change: `fenced` is 1
(fenced) or -1 (unfenced), `in_controlled_shutdown` 1 or 0. What a record is named by, other than
topics, brokers and config keys, is `name`. Uuids are text, and secrets are starred.
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
"""From records of one type to one column."""

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
