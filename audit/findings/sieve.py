"""Which records of a piece of the log a caller must hand to an `EventMaker` if it can't hand all.

Rule: it keeps what events are made of, the first record of each caller, and the first record of
each batch whose clock is apart. It remembers callers within its piece only, so pieces may be read
anywhere and in any order. It doesn't ask whether a record counts: the caller drops what is not
settled afterwards, or begins a piece where no transaction is open.
"""

from audit.findings.event_making import clock_apart_ms, concerns, event_caller
from ledger.batch import BatchHeader
from metadata.records import Record


class Sieve:
    """For one piece of the log."""

    def __init__(self, *, leaders: bool = True) -> None:
        """`leaders` False: drop the records that only say who leads."""
        self._leaders = leaders
        self._seen: set[tuple[str, ...]] = set()
        self._header: BatchHeader | None = None

    def keeps(self, header: BatchHeader, record: Record) -> bool:
        """Return whether to keep a record. Call it for each record in order."""
        if header is not self._header:
            self._header = header
            identity = event_caller(header).identity
            if identity not in self._seen:
                self._seen.add(identity)
                return True
            if clock_apart_ms(header):
                return True
        return concerns(record, leaders=self._leaders)
