"""Writes a log's batches into an index.

Rule: rows wait in memory and are written with the position in one transaction of the database. So
an index always is that of the log's first batches, up to its position. A batch is taken only if it
continues the one before it.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from audit.index.concealing import Concealing
from audit.index.interning import CauseKey, Interned, Subjects, cause_key
from audit.index.schema import fingerprint
from audit.index.state_steps import EntryNow, StateSteps
from audit.index.things import Things
from audit.questions.names import Names
from audit.reading.settling import ABORTED, OPEN, SETTLED
from ledger.batch import Batch, BatchHeader
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records, encode_record
from metadata.image import MetadataImage, ReplayError
from metadata.image.families import TABLES
from metadata.messages.records_json import record_to_json
from metadata.records import (
    RECORD_CLASSES,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntryRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RemoveEntryRecord,
    RequestOutcomeRecord,
    SessionRecord,
    TopicRecord,
)

RECORDS_PER_WRITE: Final = 20_000
NEVER: Final = 2**62
"""The last offset of a transaction that is open."""
_MANY: Final = frozenset(
    (
        EndSessionRecord,
        EntryRecord,
        NoOpRecord,
        PartitionChangeRecord,
        PartitionRecord,
        ProducerIdsRecord,
        RemoveEntryRecord,
        RequestOutcomeRecord,
        SessionRecord,
    )
)
"""Kinds of which a log has very many: free text doesn't search their fields."""
_NAMING: Final = frozenset((TopicRecord, AccessControlEntryRecord, DelegationTokenRecord))
_BRACKETS: Final = frozenset(
    (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord, BeginEpochRecord)
)
_INSERTS: Final = {
    "record": "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)",
    "batch": "INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "cause": "INSERT INTO cause VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "reason": "INSERT INTO reason VALUES (?, ?)",
    "detail": "INSERT INTO detail VALUES (?, ?)",
    "word": "INSERT INTO word VALUES (?, ?, ?)",
    "bracket": "INSERT OR REPLACE INTO bracket VALUES (?, ?, ?)",
    "thing": "INSERT INTO thing VALUES (?, ?, ?, ?, ?, ?)",
    "version": "INSERT INTO version VALUES (?, ?, ?, ?)",
    "tally": "INSERT INTO tally VALUES (?, ?, ?)",
    "naming": "INSERT INTO naming(record) VALUES (?)",
}
_TAGS: Final = {kind: kind.TYPE_ID * 100 + kind.VERSION for kind in RECORD_CLASSES}
_fields_text = msgspec.json.Encoder().encode


class ReplacedError(LedgerError):
    """A batch does not continue the one before it in the index."""


class OtherWriterError(Exception):
    """Another process has written to the index since."""


class IndexWriter:
    """Takes batches in order and writes their rows."""

    def __init__(self, database: sqlite3.Connection, key: bytes, mark: LogMark) -> None:
        """`key`: of the digests of secrets. `mark`: where the index ends."""
        self.mark = self._written = mark
        self.log_start = mark.log_end
        self._database = database
        self._conceal = Concealing(key)
        self._key = key
        self.names = Names()
        self._steps: StateSteps | None = None
        self.state_from: int | None = None
        """The offset from which states are known; None: from none yet."""
        self.causes: Interned[CauseKey] = Interned()
        self.reasons: Interned[str] = Interned()
        self.details: Interned[str] = Interned()
        self.subjects = Subjects(self.names)
        self.things = Things(self.names)
        self.version = 0
        self.bracket: int | None = None
        """Where the open transaction begins."""
        self.state_versions = 0
        """How many versions hold at `state_from`."""
        self._rows: dict[str, list[Any]] = {name: [] for name in _INSERTS}
        self._waiting = 0

    def begin_state(self, image: MetadataImage, *, is_known: bool = False) -> None:
        """Follow the state from an image on, at the present position.

        `is_known`: the index holds the image's entries already.
        """
        self._steps = StateSteps(image)
        if is_known:
            return
        self.state_from = image.offset
        for table in TABLES:
            for key, value in image.table(table).items():
                self._note(EntryNow(table, key, value), image.offset)
        self._rows["tally"] += self.things.take_tallies(image.offset)
        self.state_versions = self.version

    def learn(self, records: Iterable[Record]) -> None:
        """Learn the names that hold before the first batch."""
        for record in records:
            if type(record) in _NAMING:
                self.names.learn(record)
                self._rows["naming"].append((encode_record(self._conceal.concealed(record)),))

    def take_all(self, batches: Iterable[Batch]) -> Iterator[int]:
        """Take batches; yield the offset reached after each write. Raises LedgerError."""
        for batch in batches:
            self.take(batch)
            if self._waiting >= RECORDS_PER_WRITE:
                self.write()
                yield self.mark.log_end
        self.write()
        yield self.mark.log_end

    def take(self, batch: Batch) -> None:
        """Take the next batch. Raises LedgerError if it doesn't continue the last one."""
        header = batch.header
        if objection := self.mark.objection(batch):
            raise ReplacedError(f"the log was replaced: {objection}")
        try:
            records = decode_records(batch.records)
            self._take_records(header, records)
            if self._steps is not None:
                end = header.end_offset
                for entry in self._steps.take(header, records):
                    self._note(entry, end)
                self._rows["tally"] += self.things.take_tallies(end)
            self._rows["batch"][-1] += (self.version,)
        except (RecordDecodeError, ReplayError) as error:
            self._drop(header)
            raise LedgerError(
                f"the batch at offset {header.base_offset} can't be replayed: {error}"
            ) from error
        self.mark = self.mark.after(batch)
        self._waiting += header.count

    def _drop(self, header: BatchHeader) -> None:
        """Drop the rows of a batch that can't be taken. Nothing can be taken after it."""
        rows, base, end = self._rows, header.base_offset, header.end_offset
        rows["record"] = [row for row in rows["record"] if row[0] < base]
        rows["batch"] = [row for row in rows["batch"] if row[0] < base]
        rows["version"] = [row for row in rows["version"] if row[2] < end]
        rows["tally"] = [row for row in rows["tally"] if row[1] < end]
        rows["bracket"] = [
            row for row in rows["bracket"] if row[0] < base and not base <= row[1] < NEVER
        ]

    def _take_records(self, header: BatchHeader, records: list[Record]) -> None:
        """Add the rows of a batch and of its records. The names are learned on the way."""
        said = header.provenance
        cause = self.causes.number(cause_key(header))
        reason = self.reasons.number(said.reason) if said.reason else None
        subject_of, add = self.subjects.number, self._rows["record"].append
        for offset, record in enumerate(records, header.base_offset):
            kind = type(record)
            detail = None
            if kind not in _MANY:
                detail = self._detail(record)
                self._note_kind(kind, record, offset)
            add((offset, _TAGS[kind], subject_of(record), cause, reason, detail))
        end, request = header.end_offset, said.request_id or None
        time_ms = header.timestamp_ms
        self._rows["batch"].append(
            (header.base_offset, end, header.epoch, time_ms, cause, reason, request)
        )

    def _note_kind(self, kind: type[Record], record: Record, offset: int) -> None:
        if kind in _BRACKETS:
            self._bracket(kind, offset)
        elif kind in _NAMING:
            row = (encode_record(self._conceal.concealed(record)),)
            self._rows["naming"].append(row)

    def _detail(self, record: Record) -> int | None:
        said = _fields_text(record_to_json(record)["data"])
        return None if said == b"{}" else self.details.number(said.decode())

    def _bracket(self, kind: type[Record], offset: int) -> None:
        """Note the beginning or the end of a transaction, as `audit.reading.settling` does."""
        begun = self.bracket
        if kind is BeginTransactionRecord:
            if begun is None:
                self.bracket = offset
                self._rows["bracket"].append((offset, NEVER, OPEN))
        elif begun is not None:
            self.bracket = None
            outcome = SETTLED if kind is EndTransactionRecord else ABORTED
            last = offset - 1 if kind is BeginEpochRecord else offset
            self._rows["bracket"].append((begun, last, outcome))

    def _note(self, entry: EntryNow, at: int) -> None:
        table, key, value = entry
        version = self.version + 1
        number = self.things.note(table.name, key, version, is_there=value is not None)
        if number is None:
            return
        self.version = version
        kept = None if value is None else self._conceal.encoded(table.records(key, value))
        self._rows["version"].append((version, number, at, kept))

    def write(self) -> None:
        """Write what waits, with the position. Raises sqlite3.Error."""
        rows = self._rows
        rows["cause"] = self.causes.take_new(lambda number, cause: (number, *cause))
        rows["reason"] = self.reasons.take_new(lambda number, text: (number, text))
        rows["detail"] = self.details.take_new(lambda number, text: (number, text))
        rows["word"] = [
            (word, word.partition(":")[2] or word, number)
            for number, words in self.subjects.interned.take_new(lambda *one: one)
            for word in words
        ]
        rows["thing"], self.things.new = self.things.new, []
        execute = self._database.execute
        execute("BEGIN IMMEDIATE")
        try:
            self._check_alone()
            for name, insert in _INSERTS.items():
                if rows[name]:
                    self._database.executemany(insert, rows[name])
            self._database.executemany(
                "INSERT OR REPLACE INTO position VALUES (?, ?)", self._position().items()
            )
            execute("COMMIT")
        except BaseException:
            execute("ROLLBACK")
            raise
        for some in rows.values():
            some.clear()
        self._waiting, self._written = 0, self.mark

    def move_to(self, database: sqlite3.Connection) -> None:
        """Write to this database from now on, which is the same one, opened again."""
        self._database = database

    def _check_alone(self) -> None:
        found = self._database.execute("SELECT value FROM position WHERE name = 'mark'").fetchone()
        if found is not None and found[0] != self._written.encode():
            raise OtherWriterError

    def _position(self) -> dict[str, Any]:
        return {
            "fingerprint": fingerprint(),
            "key": self._key,
            "mark": self.mark.encode(),
            "log_start": self.log_start,
            "state_from": self.state_from,
            "state_versions": self.state_versions,
        }
