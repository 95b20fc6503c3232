"""Group commit: what waits while a sync is under way becomes the next entry.

Rule: one entry is a list of payloads, at most 4 MiB, and the journal syncs one entry at a time;
so the slower the disk, the larger the entries, and throughput hardly falls.
"""

from collections import deque

from quorum.config import ENTRY_BYTES_MAX

_OVERHEAD = 5
"""MessagePack's header of a byte string, at most."""


class Proposals:
    """Payloads that are not in the log yet, in order."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, payload: bytes) -> None:
        """Queue a payload. Raises ValueError when no entry can hold it."""
        if len(payload) + _OVERHEAD > ENTRY_BYTES_MAX:
            raise ValueError(f"a payload of {len(payload)} bytes; at most 4 MiB fit in an entry")
        self._waiting.append(payload)

    def take_entry(self) -> list[bytes]:
        """Take out what the next entry holds; at least one payload when any waits."""
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
        """Forget all: their outcome is unknown."""
        self._waiting.clear()
