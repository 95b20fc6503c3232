"""What a table of the audit is made of: columns with a kind and a meaning.

Rule: a column's meaning is data, so that docs, catalogues and the console show the same sentence. A
column of one name means the same in every table, unless the table says otherwise.
"""

from typing import Final, NamedTuple

from audit.tables.meanings import MEANINGS

TEXT: Final = "text"
INT: Final = "int"
INTS: Final = "ints"
BOOL: Final = "bool"
BYTES: Final = "bytes"
"""In kept tables only."""
TIME: Final = "time"
"""In kept tables only: a moment, UTC, to the microsecond."""
DATE: Final = "date"
"""In kept tables only."""


class Column(NamedTuple):
    """A column: `kind` is TEXT, INT (64 bits), INTS (a list of INT), BOOL, BYTES, TIME or DATE."""

    name: str
    kind: str
    nullable: bool = False
    meaning: str = ""
    """One or two sentences for people."""


class AuditTable(NamedTuple):
    """A table. The first `key` columns order its rows and identify a row."""

    name: str
    key: int
    columns: tuple[Column, ...]
    meaning: str = ""
    """What a row is, and what the words in it mean."""


def columns_of(spec: str, own: dict[str, str] | None = None) -> tuple[Column, ...]:
    """Read `name:kind` pairs. A question mark after the kind means that it may be null.

    `own`: meanings of columns that mean something else here than elsewhere.
    """
    meanings = MEANINGS | (own or {})
    columns = []
    for word in spec.split():
        name, _, kind = word.partition(":")
        columns.append(Column(name, kind.rstrip("?"), kind.endswith("?"), meanings[name]))
    return tuple(columns)
