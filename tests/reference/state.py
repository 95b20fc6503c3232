"""The state of a log at an offset, and the branch of an open transaction.

Rule: the state is its own snapshot: plain dicts, table by table, of the records that a checkpoint
would hold. A row is replaced and never changed. So a transaction keeps the state before it by a
copy of the dicts. There are no deltas, no indexes and nothing incremental here.
"""

from collections.abc import Iterable
from typing import Any

from tests.reference.schema import Fields, RefusedError
from tests.reference.tables import TABLES, Tables, key, snapshot, state_hash


class State:
    """Rows; `tables` is what is seen, also while a transaction is open."""

    def __init__(self) -> None:
        self.tables: Tables = {name: {} for name in TABLES}
        self.end = self.epoch = self.timestamp_ms = 0
        self.began: int | None = None
        """Offset of the open transaction's BeginTransactionRecord."""
        self._branch: Tables | None = None

    @classmethod
    def loaded(
        cls, records: Iterable[tuple[str, Fields]], end: int, epoch: int, timestamp_ms: int
    ) -> "State":
        """Return the state that a checkpoint's records say."""
        state = cls()
        table_of = {record: table for table, record in TABLES.items()}
        for name, fields in records:
            if name not in table_of:
                raise RefusedError(f"{name} can't stand in a checkpoint")
            table = table_of[name]
            if state.tables[table].setdefault(key(table, fields), fields) is not fields:
                raise RefusedError(f"a checkpoint has two rows for {fields}")
        state.end, state.epoch, state.timestamp_ms = end, epoch, timestamp_ms
        return state

    def all_tables(self) -> list[Tables]:
        """What is seen, and what the open transaction would make of it."""
        return [self.tables] if self._branch is None else [self.tables, self._branch]

    @property
    def now(self) -> Tables:
        """Where records are written: into the transaction, if one is open."""
        return self.tables if self._branch is None else self._branch

    def put(self, table: str, fields: Fields, **changed: Any) -> None:
        """Write a row, with some fields changed."""
        row = {**fields, **changed}
        self.now[table][key(table, row)] = row

    def row(self, table: str, place: Any) -> Fields:
        """Return a row that must be there."""
        if place not in self.now[table]:
            raise RefusedError(f"{table} has no {place!r} at {self.end}")
        return self.now[table][place]

    def remove(self, table: str, place: Any) -> None:
        """Remove a row that must be there."""
        self.row(table, place)
        del self.now[table][place]

    def branch_off(self, offset: int) -> None:
        """A transaction begins."""
        if self._branch is not None:
            raise RefusedError(f"a transaction begins at {offset} within that of {self.began}")
        self._branch = {name: dict(rows) for name, rows in self.tables.items()}
        self.began = offset

    def join(self) -> None:
        """The open transaction is seen from here on."""
        self.tables, self._branch, self.began = self.now, None, None

    def drop_branch(self) -> None:
        """The open transaction, if any, has never been."""
        self._branch = self.began = None

    def snapshot(self) -> list[tuple[str, Fields]]:
        """Return the records of a checkpoint, in the order in which they stand there."""
        return snapshot(self.tables)

    def hash(self) -> bytes:
        """Return the state hash, 64 bytes: what brokers share, then what controllers hold."""
        return state_hash(self.tables)
