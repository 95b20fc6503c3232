"""A bounded buffer between a store that reports changes and a program that takes them slowly.

Rule: nothing is dropped silently. When more than `limit` changes wait, all that wait become one
batch with the last state of each key, marked `coalesced`. So what waits is bounded by the limit and
the number of keys watched.
"""

from collections import deque
from collections.abc import Sequence

from coordination.backend import ValueChange, WatchBatch


class BatchBuffer:
    """Batches in their order."""

    def __init__(self, limit: int) -> None:
        """`limit`: how many changes wait at most before they are coalesced."""
        self._limit = limit
        self._batches: deque[WatchBatch] = deque()
        self._size = 0
        self._floor = 0

    def add(self, batch: WatchBatch) -> None:
        """Put a batch behind the others."""
        if self._batches and self._batches[-1].kind == "progress":
            self._size -= size_of(self._batches.pop())
        if batch.kind == "progress" and self._batches:
            return
        self._batches.append(batch)
        self._size += size_of(batch)
        if len(self._batches) > 1 and self._size > self._limit + self._floor:
            merged = merge(self._batches)
            self._batches = deque([merged])
            # What can't be merged any further must not be merged anew with each change.
            self._size = self._floor = size_of(merged)

    def take(self) -> WatchBatch | None:
        """Return the first batch; None: there is none."""
        if not self._batches:
            return None
        batch = self._batches.popleft()
        self._size -= size_of(batch)
        self._floor = 0
        return batch

    def clear(self) -> None:
        """Forget what waits."""
        self._batches.clear()
        self._size = self._floor = 0


def size_of(batch: WatchBatch) -> int:
    """How much of the limit a batch takes."""
    return max(1, len(batch.changes))


def merge(batches: Sequence[WatchBatch]) -> WatchBatch:
    """Make one batch of several: the last state of each key, or of the resource."""
    kind = "changes"
    changes: dict[str, ValueChange] = {}
    entries = None
    for batch in batches:
        if batch.kind in ("snapshot", "resync"):
            kind = "snapshot" if batch.kind == "snapshot" else "resync"
            changes = {}
        for change in batch.changes:
            changes.pop(change.key, None)
            # On top of a whole state, what was deleted is just not there.
            if change.record is not None or kind == "changes":
                changes[change.key] = change
        entries = batch.entries if batch.entries is not None else entries
    return WatchBatch(
        "changes" if kind == "changes" else "snapshot" if kind == "snapshot" else "resync",
        batches[-1].revision,
        coalesced=True,
        changes=tuple(changes.values()),
        entries=entries,
    )
