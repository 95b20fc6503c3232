"""Finds the member with the least value, where values rise far more often than they fall.

Rule: a rise costs nothing here. The heap keeps the value that a member had when it was put in, and
compares it with the present one only when the member comes to the top. So a heartbeat, which moves
the end of a session, needs no work, and the least value is found without a look at all members.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic, TypeVar

M = TypeVar("M", int, bytes)
"""An id of a member."""
V = TypeVar("V", int, float)

_OUTDATED_SHARE: Final = 8
"""If an eighth of the members is found to have risen, all are put in again: that is quicker."""


class RisingHeap(Generic[M, V]):
    """Members by id, of which the one with the least value is asked for."""

    def __init__(self, value_of: Callable[[M], V | None]) -> None:
        """`value_of` returns a member's present value; None: it is a member no more."""
        self._value_of: Callable[[M], V | None] = value_of
        self._heap: list[tuple[V, M]] = []
        self._kept: dict[M, V] = {}
        """The value in each member's entry. Other entries of the heap are void."""

    def __len__(self) -> int:
        """How many members there are, with those that left and were not noticed yet."""
        return len(self._kept)

    def put(self, member: M) -> None:
        """A member is new, or its value fell. For a value that rose, this does nothing."""
        value = self._value_of(member)
        if value is None:
            return
        kept = self._kept.get(member)
        if kept is None or value < kept:
            self._kept[member] = value
            heappush(self._heap, (value, member))

    def fill(self, members: list[M]) -> None:
        """Begin with these members and no others."""
        values = ((member, self._value_of(member)) for member in members)
        self._kept = {member: value for member, value in values if value is not None}
        self._heap = [(value, member) for member, value in self._kept.items()]
        heapify(self._heap)

    def least(self) -> tuple[V, M] | None:
        """Return the least value and its member, of equals the lowest id; None: no members."""
        heap, kept = self._heap, self._kept
        outdated = 0
        while heap:
            value, member = heap[0]
            if kept.get(member) != value:
                heappop(heap)
                continue
            now = self._value_of(member)
            if now is None:
                heappop(heap)
                del kept[member]
            elif now > value:
                kept[member] = now
                heapreplace(heap, (now, member))
            else:
                return heap[0]
            outdated += 1
            if outdated * _OUTDATED_SHARE > len(kept) + _OUTDATED_SHARE * 8:
                self.fill(list(kept))
                heap, kept, outdated = self._heap, self._kept, 0
        return None
