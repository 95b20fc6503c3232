"""The tables of an index.

Rule: rows are only added, except the position and a transaction's end. `version.id` grows with the
log, and `batch.version_end` says how far it had grown at the end of a batch. So the state at a
moment is the newest version of each thing up to one id, and a difference is a range of ids.

Texts that repeat are interned: a record's row is a few small integers.
"""

from functools import cache
from hashlib import sha256
from typing import Final

from metadata.image.families import TABLES
from metadata.records import RECORD_CLASSES
from metadata.records.schema import fields_of

FORMAT: Final = 1

CREATE: Final = (
    "CREATE TABLE position(name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    # One row for each record of the log.
    (
        "CREATE TABLE record(offset_ INTEGER PRIMARY KEY, type INTEGER, subject INTEGER,"
        " cause INTEGER, reason INTEGER, detail INTEGER)"
    ),
    # One row for each batch.
    (
        "CREATE TABLE batch(base INTEGER PRIMARY KEY, end_ INTEGER, epoch INTEGER, time_ms INTEGER,"
        " cause INTEGER, reason INTEGER, request BLOB, version_end INTEGER)"
    ),
    # Who asked, how, and for which operation.
    (
        "CREATE TABLE cause(id INTEGER PRIMARY KEY, principal TEXT, acted_as TEXT,"
        " on_behalf_of TEXT, auth_method TEXT, client_address TEXT, client_id TEXT, operation TEXT)"
    ),
    "CREATE TABLE reason(id INTEGER PRIMARY KEY, text TEXT)",
    # The fields of a record that is not one of many, secrets starred, for free text.
    "CREATE TABLE detail(id INTEGER PRIMARY KEY, text TEXT)",
    # What a record is about: one subject has one word or several.
    "CREATE TABLE word(word TEXT, name TEXT, subject INTEGER)",
    # Transactions, and what became of their records.
    "CREATE TABLE bracket(first INTEGER PRIMARY KEY, last INTEGER, outcome TEXT)",
    # An entry of the state, and its values. None: it is not there from then on.
    (
        "CREATE TABLE thing(id INTEGER PRIMARY KEY, tbl INTEGER, name TEXT, sort TEXT, key BLOB,"
        " first_version INTEGER)"
    ),
    "CREATE TABLE version(id INTEGER PRIMARY KEY, thing INTEGER, at_ INTEGER, value BLOB)",
    # How many entries a table has from an offset on.
    (
        "CREATE TABLE tally(tbl INTEGER, at_ INTEGER, entries INTEGER,"
        " PRIMARY KEY (tbl, at_)) WITHOUT ROWID"
    ),
    # The records that give names to ids.
    "CREATE TABLE naming(id INTEGER PRIMARY KEY, record BLOB)",
)
INDEXES: Final = (
    "CREATE INDEX record_type ON record(type)",
    "CREATE INDEX record_subject ON record(subject)",
    "CREATE INDEX record_cause ON record(cause)",
    "CREATE INDEX record_reason ON record(reason) WHERE reason IS NOT NULL",
    "CREATE INDEX record_detail ON record(detail) WHERE detail IS NOT NULL",
    "CREATE INDEX batch_request ON batch(request) WHERE request IS NOT NULL",
    "CREATE INDEX word_word ON word(word, subject)",
    "CREATE INDEX word_name ON word(name, subject)",
    "CREATE INDEX word_subject ON word(subject)",
    "CREATE INDEX thing_sort ON thing(tbl, sort, id)",
    "CREATE INDEX thing_name ON thing(name, tbl)",
    "CREATE INDEX version_thing ON version(thing)",
)

LEFT_OUT: Final = frozenset(("outcomes", "floors"))
"""Outcomes of requests are not kept as states: there is one for each request. Search finds them."""
TABLE_NUMBERS: Final = {table.name: number for number, table in enumerate(TABLES)}
TABLE_NAMES: Final = {number: name for name, number in TABLE_NUMBERS.items()}


@cache
def fingerprint() -> str:
    """Return a text that changes when records or tables do: then an old index can't be used."""
    layout = [(kind.__name__, [f.name for f in fields_of(kind)]) for kind in RECORD_CLASSES]
    tables = [table.name for table in TABLES]
    return sha256(repr((FORMAT, CREATE, INDEXES, layout, tables)).encode()).hexdigest()
