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
        self._change: tuple[int, bytes, list[bytes]] | None = None
        """How many payloads go before a change of the voters, the voters, and its payloads."""

    def __len__(self) -> int:
        return len(self._waiting) + (self._change is not None)

    def add(self, payload: bytes) -> None:
        """Queue a payload. Raises ValueError when no entry can hold it."""
        _check(payload)
        self._waiting.append(payload)

    @property
    def has_change(self) -> bool:
        """Whether a change of the voters waits."""
        return self._change is not None

    @property
    def next_voters(self) -> bytes | None:
        """The voters that the next entry names; None: it is no change of the voters."""
        return self._change[1] if self._change is not None and self._change[0] == 0 else None

    def add_change(self, voters: bytes, payload: bytes) -> None:
        """Queue a change of the voters, behind what waits now. It becomes an entry of its own.

        Raises ValueError when no entry can hold the payload.
        """
        assert self._change is None, "one change at a time"
        _check(payload)
        self._change = (len(self._waiting), voters, [payload])

    def take_change(self) -> tuple[bytes, list[bytes]]:
        """Remove and return the change, which is next: voters and payloads."""
        assert self._change is not None
        _, voters, payloads = self._change
        self._change = None
        return voters, payloads

    def take_entry(self) -> list[bytes]:
        """Remove and return the payloads of the next entry; at least one if any waits."""
        waiting = self._waiting
        room = ENTRY_BYTES_MAX
        taken: list[bytes] = []
        before = len(waiting) if self._change is None else self._change[0]
        while len(taken) < before:
            room -= len(waiting[0]) + _OVERHEAD
            if room < 0:
                break
            taken.append(waiting.popleft())
        if self._change is not None:
            self._change = (before - len(taken), *self._change[1:])
        return taken

    def clear(self) -> None:
        """Forget every payload: the outcome of each is unknown."""
        self._waiting.clear()
        self._change = None


def _check(payload: bytes) -> None:
    """Raise ValueError when no entry can hold a payload."""
    if len(payload) + _OVERHEAD > ENTRY_BYTES_MAX:
        raise ValueError(f"a payload of {len(payload)} bytes; at most 1.25 MiB fit in an entry")
