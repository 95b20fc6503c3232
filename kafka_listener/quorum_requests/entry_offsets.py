"""Which offset the log has at an entry of the quorum's, roughly: for how far a voter has come.

The quorum counts entries, and Kafka counts records. Each time something is applied, the pair of
both is noted. A voter that has an entry durably has the log at least up to the newest pair at or
before it.
"""

from bisect import bisect_right
from collections import deque
from typing import Final

_KEPT: Final = 1024


class EntryOffsets:
    """The newest pairs of entry and log end."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[int, int]] = deque(maxlen=_KEPT)

    def note(self, entry: int, log_end: int) -> None:
        """Everything up to this entry is applied, and the log ends here."""
        if not self._pairs or self._pairs[-1][0] < entry:
            self._pairs.append((entry, log_end))

    def clear(self) -> None:
        """Forget all pairs: the log was replaced."""
        self._pairs.clear()

    def offset_at(self, entry: int) -> int:
        """Return the log's end at an entry; -1: it isn't known."""
        found = bisect_right(self._pairs, entry, key=lambda pair: pair[0])
        return self._pairs[found - 1][1] if found else -1
