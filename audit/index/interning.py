"""Numbers for texts that repeat: causes, reasons, details and subjects of records.

Rule: a number is given once and never changes. New ones wait in `new` until they are written.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from audit.questions.names import Names
from ledger.batch import BatchHeader
from metadata.records import PartitionChangeRecord, PartitionRecord, Record, TopicRecord

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """The numbers of the values of one kind."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.new: list[tuple[int, T]] = []

    def restore(self, known: Iterable[tuple[T, int]]) -> None:
        """Take up the values of an index that was opened, with their numbers."""
        self._numbers.update(known)

    def number(self, value: T) -> int:
        """Return the number of a value; a new one for a new value."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._numbers) + 1
            self.new.append((number, value))
        return number

    def take_new(self, row: Callable[[int, T], Any]) -> list[Any]:
        """Return rows for the values that were not written yet, and forget them."""
        rows = [row(*one) for one in self.new]
        self.new.clear()
        return rows


CauseKey = tuple[str, str, str, str, str, str, str]


def cause_key(header: BatchHeader) -> CauseKey:
    """Return who asked for a batch and how: the columns of the table `cause`, in order."""
    said = header.provenance
    return (
        said.principal,
        header.acted_as,
        said.on_behalf_of,
        said.auth_method,
        said.client_address,
        said.client_id,
        said.operation,
    )


class Subjects:
    """The numbers of what records are about. It learns the names on the way."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.interned: Interned[tuple[str, ...]] = Interned()
        self._partitions: dict[tuple[bytes, int], int] = {}
        """The numbers of partitions of topics whose names are known. Most records name one."""

    def number(self, record: Record) -> int | None:
        """Return the number of a record's words; None: it has none.

        The caller passes each record of the log once, in order.
        """
        kind = type(record)
        if kind is PartitionChangeRecord or kind is PartitionRecord:
            assert isinstance(record, PartitionChangeRecord | PartitionRecord)
            key = (record.topic_id, record.partition_id)
            number = self._partitions.get(key)
            if number is None:
                number = self.interned.number(record.subjects(self.names))
                if self.names.topic(record.topic_id) is not None:
                    self._partitions[key] = number
            return number
        if kind is TopicRecord:
            assert isinstance(record, TopicRecord)
            if self.names.topic(record.topic_id) is not None:
                self._partitions.clear()  # the same id may have another name from here on
        self.names.learn(record)
        words = record.subjects(self.names)
        return self.interned.number(words) if words else None
