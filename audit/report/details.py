"""The records behind a figure: what the page shows when somebody asks where a number is from.

Rule: a figure refers to a `Detail` by its place. A detail names a few of its records, says how many
there are, and gives the command that shows them all. So the page stays small.
"""

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

MOST: Final = 6
"""The most records of one detail that the page holds."""


class RecordAt(NamedTuple):
    """Where a record is.

    With a `subject`, it is the first record of the batch around the offset that is about it.
    """

    offset: int
    subject: str = ""


class Detail(NamedTuple):
    """The records behind one figure."""

    title: str
    total: int
    """How many records there are."""
    records: tuple[RecordAt, ...]
    """Some of them."""
    command: str


class Details:
    """All details of a page, in the order in which they were added."""

    def __init__(self, where: str, log_start: int = 0) -> None:
        """`where`: the log, as it was named to the command. `log_start`: its first offset."""
        self.all: list[Detail] = []
        self._where = where
        self._log_start = log_start

    def add(self, title: str, total: int, records: Sequence[RecordAt], *command: str) -> int:
        """Add a detail; return its place. `command`: the words after `logberg audit`.

        The log is written after the first of them.
        """
        name, *rest = command
        words = shlex.join(["logberg", "audit", name, self._where, *rest])
        self.all.append(Detail(title, total, tuple(records[:MOST]), words))
        return len(self.all) - 1

    def since(self, offset: int) -> tuple[str, str]:
        """Return the option that begins at an offset, or where the log begins."""
        return "--from", str(max(offset, self._log_start))

    def span(self, first: int, last: int) -> tuple[str, str, str, str]:
        """Return the options for the records from `first` to `last`, both included."""
        return *self.since(first), "--to", str(max(last, self._log_start) + 1)

    def wanted(self) -> list[RecordAt]:
        """Return the records that the page shows, in the log's order."""
        return sorted({record for detail in self.all for record in detail.records})
