"""What a job reads: the whole batches of one replica up to an offset, and where counting begins.

Rule: a log that begins at offset 0 is counted from there, from an empty state. A log that was cut
is counted from its first checkpoint; no transaction reaches across a checkpoint. The checkpoint's
records come before the first batch, as facts of the offset before the checkpoint's own. Without a
checkpoint nothing can be counted, and an error says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from audit.places.replicas import NoLogError, Replica
from audit.reading.first_checkpoint import first_checkpoint
from audit.reading.settling import Logged, Moment, moments, settled
from ledger.batch import Batch
from ledger.errors import LedgerError
from metadata.records import Record
from snapshots.checkpoint import CheckpointHeader

OnProgress = Callable[[int, int], None]
_BATCHES_PER_REPORT = 1_024


class Question(NamedTuple):
    """What a job is asked."""

    replicas: Sequence[Replica]
    up_to: int | None = None
    """Use the batches that begin before this offset; None means all."""
    on_progress: OnProgress | None = None
    """Called with the offset that was reached, and the end."""
    notes: list[str] | None = None
    """Receives notes about the answer for the user."""
    damage: list[str] | None = None
    """If this is a list, reading ends at damage and appends its sentence here. If None, damage
    raises."""


class Beginning(NamedTuple):
    """What is known before the first batch."""

    offset: int
    """The base offset of the first batch."""
    epoch: int
    """The checkpoint's; 0 without one."""
    time_ms: int
    """The checkpoint's; 0 without one."""
    records: tuple[Record, ...]
    """The checkpoint's; none if the log begins at offset 0."""

    @property
    def fact_offset(self) -> int:
        """The offset that the checkpoint's records have in intervals."""
        return self.offset - 1


class Turn(NamedTuple):
    """What becomes true at one moment. In a cut log, the first turn is the checkpoint's facts."""

    base: int
    time_ms: int
    records: Sequence[Record]


class Feed:
    """The log that a question is about. Raises NoLogError, LedgerError, OSError."""

    def __init__(self, question: Question) -> None:
        self.replica = longest(question.replicas)
        self.reader = self.replica.reader()
        self._on_progress = question.on_progress
        self._notes = question.notes
        self._damage = question.damage
        end = self.reader.log_end
        if question.up_to is not None and question.up_to > end:
            raise NoLogError(
                f"{self.replica.location}: the log ends at offset {end}, before {question.up_to}."
            )
        self.end = end if question.up_to is None else question.up_to
        self.horizon_ms = 0
        """The timestamp of the last batch, after it was read."""

    def batches(self, start: int | None = None) -> Iterator[Batch]:
        """Yield the batches from `start`, or from the beginning of the log. Raises LedgerError."""
        timestamp_ms = self.horizon_ms
        batches = until_damage(self.reader.batches(start, self.end), self._damage)
        for number, batch in enumerate(batches, 1):
            yield batch
            timestamp_ms = batch.header.timestamp_ms
            if self._on_progress is not None and number % _BATCHES_PER_REPORT == 0:
                self._on_progress(batch.header.end_offset, self.end)
        self.horizon_ms = timestamp_ms
        if self._notes is not None:
            self._notes += [note for note in self.reader.notes if note not in self._notes]

    def beginning(self) -> Beginning:
        """Return where counting begins. Raises NoLogError, CheckpointError, LedgerError."""
        start = self.reader.log_start
        if start == 0:
            return Beginning(0, 0, 0, ())
        header, records = self._first_checkpoint()
        if self._notes is not None:
            self._notes.append(
                f"{self.replica.location}: history begins at offset {start}; counting begins at "
                f"the checkpoint at offset {header.offset}"
            )
        self.horizon_ms = header.timestamp_ms
        return Beginning(header.offset, header.epoch, header.timestamp_ms, records)

    def known(self) -> tuple[Record, ...]:
        """Return a cut log's first checkpoint as records, for names; empty if there is none."""
        start = self.reader.log_start
        with suppress(NoLogError):
            return self._first_checkpoint()[1] if start else ()
        return ()

    def _first_checkpoint(self) -> tuple[CheckpointHeader, tuple[Record, ...]]:
        loaded = first_checkpoint(self.replica, self.reader, self.end)
        return loaded.header, tuple(loaded.records())

    def logged(self, beginning: Beginning) -> Iterator[Logged]:
        """Yield every record from the beginning on, with its outcome."""
        return settled(self.batches(beginning.offset))

    def moments(self, beginning: Beginning) -> Iterator[Moment]:
        """Yield the records that count, moment by moment, from the beginning on."""
        return moments(self.logged(beginning))

    def turns(self) -> Iterator[Turn]:
        """Yield the facts of the beginning, then everything that counts. Raises as `beginning`."""
        beginning = self.beginning()
        if beginning.records:
            yield Turn(beginning.fact_offset, beginning.time_ms, beginning.records)
        for moment in self.moments(beginning):
            yield Turn(moment.base, moment.time_ms, [one.record for one in moment.records])


def until_damage(batches: Iterable[Batch], damage: list[str] | None) -> Iterator[Batch]:
    """Yield the batches before the first one that can't be read; append the reason to `damage`.

    Raises LedgerError if `damage` is None.
    """
    try:
        yield from batches
    except LedgerError as error:
        if damage is None:
            raise
        damage.append(str(error))


def longest(replicas: Sequence[Replica]) -> Replica:
    """Return the replica with the longest log; of equals the first."""
    if len(replicas) == 1:
        return replicas[0]
    return max(replicas, key=lambda replica: replica.reader().log_end)
