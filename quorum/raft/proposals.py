"""Group commit: payloads that wait while a sync is under way become the next entry.

Rule: an entry is a list of payloads, at most 1.25 MiB, and the journal syncs one entry at a time. A
slow disk therefore makes entries larger and costs little throughput.
"""

from collections import deque

from quorum.config import ENTRY_BYTES_MAX

_OVERHEAD = 5
"""Largest header of a byte string in MessagePack."""


class Proposals:
    """Payloads that are not in the log yet, in the order of their proposals."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, payload: bytes) -> None:
        """Queue a payload. Raises ValueError when no entry can hold it."""
        if len(payload) + _OVERHEAD > ENTRY_BYTES_MAX:
            raise ValueError(f"a payload of {len(payload)} bytes; at most 1.25 MiB fit in an entry")
        self._waiting.append(payload)

    def take_entry(self) -> list[bytes]:
        """Remove and return the payloads of the next entry; at least one if any waits."""
        waiting = self._waiting
        room = ENTRY_BYTES_MAX
        taken: list[bytes] = []
        while waiting:
            room -= len(waiting[0]) + _OVERHEAD
            if room < 0:
                break
            taken.append(waiting.popleft())
        return taken

    def clear(self) -> None:
        """Forget every payload: the outcome of each is unknown."""
        self._waiting.clear()
