"""Looks once at each of many partitions, some in each round, and changes those that need it.

A round ends after some changes, and also after some partitions that needed none. So other decisions
come in between whatever the partitions need. `sweep` does more: it looks at all of them again in
its last round, because the event of a broker must miss none.
"""

from collections.abc import Callable, Iterable, Iterator

from controller.managers.sweep import Change, Changes
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionChangeRecord

LOOKS_MAX = 4_096
"""Partitions that a round looks at, in some 100 ms."""
_STEP = 64


class Pass:
    """How far the rounds are."""

    def __init__(self, changes_max: int | None, looks_max: int | None) -> None:
        """The most changes and looks of one round; None: no limit."""
        self._changes_max = changes_max
        self._looks_max = looks_max
        self._left: Iterator[PlainPartitionKey] | None = None
        self.more = False
        """The round that was decided just now is not the last."""

    def changes(self, keys: Callable[[], Iterable[PlainPartitionKey]], change: Change) -> Changes:
        """Return the changes of the next round, in the order of the partitions."""
        if self._left is None:
            self._left = iter(keys())
        found: list[PartitionChangeRecord] = []
        self.more = True
        for number, key in enumerate(self._left, start=1):
            record = change(key)
            if record is not None:
                found.append(record)
            if len(found) == self._changes_max or number == self._looks_max:
                break
            if number % _STEP == 0:
                yield
        else:
            self.more = False
        found.sort(key=lambda record: (record.topic_id, record.partition_id))
        return found
