"""Records that begin and end a transaction, which makes many batches one change (KIP-868)."""

from typing import ClassVar

from metadata.records.declaring import Columns
from metadata.records.record import Record


class BeginTransactionRecord(Record, frozen=True, tag=2300):
    """Begins a transaction: its records become visible together at its end, or never (KIP-868)."""

    TYPE_ID: ClassVar[int] = 23
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"name": "name"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("transaction",)

    name: str | None = None


class EndTransactionRecord(Record, frozen=True, tag=2400):
    """Commits the open transaction (KIP-868)."""

    TYPE_ID: ClassVar[int] = 24
    VERSION: ClassVar[int] = 0
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("transaction",)


class AbortTransactionRecord(Record, frozen=True, tag=2500):
    """Discards the open transaction (KIP-868)."""

    TYPE_ID: ClassVar[int] = 25
    VERSION: ClassVar[int] = 0
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("transaction",)

    reason: str | None = None
