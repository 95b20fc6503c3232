"""Reads the journal: terms by index, and the index up to which our own copy is durable."""

from quorum.journal.journal import RaftJournal


class LogView:
    """Reads a journal and writes nothing."""

    def __init__(self, journal: RaftJournal) -> None:
        self._journal = journal

    @property
    def first(self) -> int:
        """Index of the first entry that is kept."""
        return self._journal.first_index

    @property
    def last(self) -> int:
        """Index of the last entry."""
        return self._journal.last_index

    @property
    def last_term(self) -> int:
        """Term of the last entry; 0 when there is none."""
        entry = self._journal.entry(self._journal.last_index)
        return 0 if entry is None else entry[2]

    @property
    def durable(self) -> int:
        """Highest index up to which our own copy is durable. Truncation can lower it."""
        return self._journal.durable_index

    def term_at(self, index: int) -> int:
        """Term of the entry at `index`; -1 when there is none (any more)."""
        entry = self._journal.entry(index)
        return -1 if entry is None else entry[2]

    def first_of_term_at(self, index: int, floor: int) -> int:
        """First index, not below `floor`, of the run of entries with the term of `index`."""
        term = self.term_at(index)
        while index > floor and self.term_at(index - 1) == term:
            index -= 1
        return max(index, floor)

    def bytes_between(self, floor: int, index: int) -> int:
        """Bytes of journal after entry `floor`, up to and including entry `index`."""
        position = self._journal.position_of_entry
        return position(min(index, self.last)) - position(min(max(floor, self.first), self.last))
