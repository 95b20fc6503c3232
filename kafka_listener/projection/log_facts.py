"""What of the log before a record decides how the record is projected.

Two facts do: the level of metadata.version, and whether the record lies in a transaction that did
not end. Both are read from the log, and kept as short lists of places. So any part of the log can
be projected again, with the same bytes (ADR 0071).

Kafka's loader knows no discarding of a transaction by a new epoch, and keeps what an aborted one
changed. So such a transaction is NoOpRecords from its Begin to its Abort, and an open one is not
shown at all yet: `settled` stands before it (ADR 0037).
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from metadata.features import BASE, METADATA_VERSION
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    Record,
)

FIRST_LEVEL: Final = BASE[METADATA_VERSION]
"""The level of a log that does not state one."""


def level_set_by(record: FeatureLevelRecord) -> int | None:
    """Return the level of metadata.version from this record on; None: it is of another feature."""
    return (record.feature_level or FIRST_LEVEL) if record.name == METADATA_VERSION else None


class LevelFrom(NamedTuple):
    """A level of metadata.version, and the first offset whose record it concerns."""

    offset: int
    level: int


class Lost(NamedTuple):
    """The offsets [start, end) of a transaction that did not end."""

    start: int
    end: int


class LogFacts:
    """The facts of a log from `start` on, where no transaction is open."""

    def __init__(self, start: int = 0, level: int = FIRST_LEVEL) -> None:
        """`level`: of metadata.version, before the record at `start`."""
        self.start = start
        self.end = start
        """The log is read up to here."""
        self._levels = [LevelFrom(start, level)]
        self._lost: list[Lost] = []
        self._begun: int | None = None
        self._levels_before = 0
        """How many levels were known before the Begin of the open transaction."""

    @property
    def settled(self) -> int:
        """The end of what can be projected: where the open transaction begins, or the end."""
        return self.end if self._begun is None else self._begun

    def read(self, base_offset: int, records: Sequence[Record]) -> None:
        """Read the next batch."""
        assert base_offset == self.end, f"the batch at {self.end} is next, not {base_offset}"
        for offset, record in enumerate(records, base_offset):
            if type(record) in _DECIDING:
                self._decide(offset, record)
        self.end = base_offset + len(records)

    def forget_before(self, offset: int) -> None:
        """Move `start` to a batch's end before `settled`: nothing before it is asked for again."""
        first = LevelFrom(offset, self.level_at(offset))
        self._levels_before -= sum(level.offset <= offset for level in self._levels) - 1
        self._levels = [first, *(level for level in self._levels if level.offset > offset)]
        self._lost = [lost for lost in self._lost if lost.end > offset]
        self.start = offset

    def level_at(self, offset: int) -> int:
        """Return the level of metadata.version that holds for the record at an offset."""
        found = bisect_right(self._levels, offset, key=lambda level: level.offset)
        return self._levels[max(found - 1, 0)].level

    def lost_within(self, start: int, end: int) -> tuple[Lost, ...]:
        """Return the transactions that did not end and have records in [start, end)."""
        first = bisect_right(self._lost, start, key=lambda lost: lost.end)
        found = []
        for lost in self._lost[first:]:
            if lost.start >= end:
                break
            found.append(lost)
        return tuple(found)

    def _decide(self, offset: int, record: Record) -> None:
        match record:
            case FeatureLevelRecord():
                level = level_set_by(record)
                if level is not None:
                    self._levels.append(LevelFrom(offset + 1, level))
            case BeginTransactionRecord():
                self._begun, self._levels_before = offset, len(self._levels)
            case EndTransactionRecord():
                self._begun = None
            case AbortTransactionRecord():
                self._lose(offset + 1)
            case BeginEpochRecord():
                self._lose(offset)

    def _lose(self, end: int) -> None:
        if self._begun is not None:
            self._lost.append(Lost(self._begun, end))
            del self._levels[self._levels_before :]
        self._begun = None


_DECIDING: Final = frozenset(
    {
        AbortTransactionRecord,
        BeginEpochRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        FeatureLevelRecord,
    }
)
