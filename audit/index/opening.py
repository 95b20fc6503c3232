"""Builds the index of a log, opens one that is there, and keeps it up as the log grows.

Rule: an index is used only if it is that of this log. Its records are those that this software
knows, and the log has its chain hash at its end. Otherwise it is built anew. Only whole batches
that continue each other are taken. So an index that another cluster's log, an older copy or a crash
left behind is never believed.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import Final

from audit.index.restoring import restored
from audit.index.schema import CREATE, INDEXES, fingerprint
from audit.index.writer import IndexWriter, OtherWriterError, ReplacedError
from audit.places.replicas import NoLogError, Replica
from audit.questions.state import state_at
from audit.reading.feed import until_damage
from audit.reading.first_checkpoint import first_checkpoint
from audit.reading.readable_log import ReadableLog
from audit.reading.state_start import UnbelievableCheckpointError, image_of
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.image import EMPTY
from runtime.disk.database import (
    begin_database,
    finish_database,
    open_database,
    remove_database,
)
from snapshots.errors import CheckpointError

OnProgress = Callable[[int, int], None]
_KEY_BYTES: Final = 32
_DIGITS: Final = 12


def index_path(folder: Path, cluster_id: str, location: str) -> Path:
    """Return where the index of a log lies in a folder of indexes."""
    told = sha256(f"{cluster_id}\n{location}".encode()).hexdigest()[:_DIGITS]
    shown = "".join(c if c.isalnum() or c in "-_" else "_" for c in cluster_id)[:40]
    return folder / f"{shown}-{told}.sqlite"


class IndexKeeper:
    """Keeps the index of one log. One thread at a time may call it."""

    def __init__(self, folder: Path, replica: Replica, reader: ReadableLog) -> None:
        """`folder`: that of all indexes; it is made if it isn't there."""
        self._replica = replica
        self.path = index_path(folder, reader.cluster_id, replica.location)
        self._writer: IndexWriter | None = None
        self._database: sqlite3.Connection | None = None
        self.damage = ""
        """Why the log could not be read further; empty: it was read to its end."""
        self.generation = 0
        """Grows when the file is replaced by another one."""

    def is_there(self, reader: ReadableLog) -> bool:
        """Return whether there is an index of this log, which may end before the log does."""
        found = _position(self.path)
        return found is not None and _fits(found, reader)

    def bring_up(self, reader: ReadableLog, on_progress: OnProgress | None = None) -> None:
        """Build the index, or add what the log has more.

        Damage ends it before the log's end, and `damage` says why. Raises NoLogError, OSError,
        sqlite3.Error.
        """
        self.damage = ""
        if self._writer is None:
            self._take_up(reader, on_progress)
        writer = self._writer
        if writer is None or writer.mark.log_end >= reader.log_end:
            return
        try:
            self._add(writer, reader, on_progress)
        except OtherWriterError:
            self._let_go()  # the next call takes up what the other process has written
        except ReplacedError:
            self._let_go()
            self._build(reader, on_progress)

    def close(self) -> None:
        """Close the file."""
        self._let_go()

    def _take_up(self, reader: ReadableLog, on_progress: OnProgress | None) -> None:
        found = _position(self.path)
        if found is None or not _fits(found, reader):
            self._build(reader, on_progress)
            return
        if found.log_end == reader.log_end:
            return  # nothing to add: the writer's memory is not needed
        try:
            database = open_database(self.path)
            writer = restored(database)
            if writer.state_from is not None:
                end = writer.mark.log_end
                state = state_at(self._replica, end, reader=reader, with_hash=False)
                writer.begin_state(state.image, is_known=True)
        except (sqlite3.Error, LedgerError, CheckpointError, NoLogError, ValueError):
            self._build(reader, on_progress)
            return
        self._database, self._writer = database, writer

    def _build(self, reader: ReadableLog, on_progress: OnProgress | None) -> None:
        remove_database(self.path)
        database = begin_database(self.path)
        for statement in CREATE:
            database.execute(statement)
        start = reader.log_start
        writer = IndexWriter(database, token_bytes(_KEY_BYTES), _first_mark(reader))
        if start == 0:
            writer.begin_state(EMPTY)
        else:
            self._begin_later(writer, reader, on_progress)
        self._add(writer, reader, on_progress)
        for statement in INDEXES:
            database.execute(statement)
        finish_database(self.path, database)
        self.generation += 1
        self._database = open_database(self.path)
        writer.move_to(self._database)
        self._writer = writer

    def _begin_later(
        self, writer: IndexWriter, reader: ReadableLog, on_progress: OnProgress | None
    ) -> None:
        """Begin the states of a log that was cut at its first checkpoint, if it has one."""
        with suppress(NoLogError, CheckpointError, UnbelievableCheckpointError):
            loaded = first_checkpoint(self._replica, reader, reader.log_end)
            writer.learn(loaded.records())
            image = image_of(loaded, check=False)
            self._add(writer, reader, on_progress, until=image.offset)
            if writer.mark.log_end == image.offset:
                writer.begin_state(image)

    def _add(
        self,
        writer: IndexWriter,
        reader: ReadableLog,
        on_progress: OnProgress | None,
        until: int | None = None,
    ) -> None:
        end = reader.log_end if until is None else until
        if self.damage or writer.mark.log_end >= end:
            return
        damage: list[str] = []
        batches = until_damage(reader.batches(writer.mark.log_end, end), damage)
        try:
            for reached in writer.take_all(batches):
                if on_progress is not None:
                    on_progress(reached, reader.log_end)
        except ReplacedError:
            raise
        except LedgerError as error:  # replay refused a batch
            writer.write()
            damage.append(str(error))
        if damage:
            self.damage = damage[0]

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._writer = None


def _first_mark(reader: ReadableLog) -> LogMark:
    """Return the mark that the first batch here continues."""
    start = reader.log_start
    if start == 0:
        return LogMark.beginning(reader.cluster_id)
    for batch in reader.batches(start, start + 1):
        return LogMark(start, batch.header.previous_hash, 0, 0)
    return LogMark(start, b"\0" * 32, 0, 0)


def _position(path: Path) -> LogMark | None:
    """Return where an index ends; None: there is none, or this software can't use it."""
    try:
        database = open_database(path)
    except (OSError, sqlite3.Error):
        return None
    try:
        found = dict(database.execute("SELECT name, value FROM position"))
        if found.get("fingerprint") != fingerprint():
            return None
        return LogMark.decode(found["mark"])
    except (sqlite3.Error, LedgerError, KeyError, TypeError):
        return None
    finally:
        database.close()


def _fits(mark: LogMark, reader: ReadableLog) -> bool:
    if not reader.log_start <= mark.log_end <= reader.log_end:
        return False
    try:
        return reader.hash_at(mark.log_end) == mark.head
    except LedgerError:
        return False
