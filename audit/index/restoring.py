"""Takes up the writer of an index that was closed: what it had in memory, from the file."""

import sqlite3
from typing import Any

from audit.index.schema import TABLE_NUMBERS
from audit.index.writer import NEVER, IndexWriter
from ledger.chain import LogMark
from metadata.codec import decode_record

_TABLES = frozenset(TABLE_NUMBERS.values())


def restored(database: sqlite3.Connection) -> IndexWriter:
    """Return the writer of an index. Raises sqlite3.Error, LedgerError, ValueError."""
    position = dict(database.execute("SELECT name, value FROM position"))
    writer = IndexWriter(database, position["key"], LogMark.decode(position["mark"]))
    writer.log_start = position["log_start"]
    writer.state_from = position["state_from"]
    writer.state_versions = position["state_versions"]

    def rows(sql: str) -> Any:
        return database.execute(sql)

    for (record,) in rows("SELECT record FROM naming ORDER BY id"):
        writer.names.learn(decode_record(record))
    columns = "principal, acted_as, on_behalf_of, auth_method, client_address, client_id, operation"
    writer.causes.restore((row[1:], row[0]) for row in rows(f"SELECT id, {columns} FROM cause"))
    writer.reasons.restore((row[1], row[0]) for row in rows("SELECT id, text FROM reason"))
    writer.details.restore((row[1], row[0]) for row in rows("SELECT id, text FROM detail"))
    words: dict[int, tuple[str, ...]] = {}
    for word, number in rows("SELECT word, subject FROM word ORDER BY rowid"):
        words[number] = (*words.get(number, ()), word)
    writer.subjects.interned.restore((said, number) for number, said in words.items())
    there = (
        "SELECT EXISTS (SELECT 1 FROM version WHERE id ="
        " (SELECT max(id) FROM version WHERE thing = t.id) AND value IS NOT NULL)"
    )
    for number, table, key, is_there in rows(
        f"SELECT id, tbl, key, ({there}) FROM thing t ORDER BY id"
    ):
        if table not in _TABLES:
            raise ValueError(f"an index names table {table}, which is unknown")
        writer.things.restore(number, table, key, is_there=bool(is_there))
    writer.version = rows("SELECT coalesce(max(id), 0) FROM version").fetchone()[0]
    found = rows(f"SELECT first FROM bracket WHERE last = {NEVER}").fetchone()
    writer.bracket = None if found is None else found[0]
    return writer
