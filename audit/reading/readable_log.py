"""A log that can be read: what a question needs of it, wherever the log lies.

`ledger.reader.LedgerReader` reads the one in a folder, and `logberg.client.remote_log` the one of
running controllers. Rule: batches that are yielded were checked, and each continues the one before.
"""

from collections.abc import Iterator
from typing import Protocol

from ledger.batch import Batch


class ReadableLog(Protocol):
    """The reading half of a ledger."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def notes(self) -> list[str]:
        """What is to be said of the log, and is no damage."""

    @property
    def log_start(self) -> int:
        """The first offset that can be read."""

    @property
    def log_end(self) -> int:
        """The offset after the last record."""

    @property
    def start_timestamp_ms(self) -> int:
        """A time before which nothing can be read; 0 for a whole log."""

    def batches(self, start: int | None = None, end: int | None = None) -> Iterator[Batch]:
        """Yield whole batches from the one that holds `start`; the last begins before `end`."""

    def end_of_batch(self, offset: int) -> int:
        """Return the end of the batch around `offset`; between two batches `offset` itself."""

    def hash_at(self, offset: int) -> bytes | None:
        """Return the chain hash of the records before `offset`; None if no batch ends there."""

    def last_timestamp_ms(self) -> int:
        """Return the timestamp of the last batch; 0 in an empty log."""

    def offset_at_time(self, timestamp_ms: int) -> int:
        """Return the end offset of the log as it was at a time (inclusive)."""
