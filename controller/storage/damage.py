"""Counts damage found and repaired by this process, for status and metrics.

Rule: the code that finds damage calls `found`, the code that repairs it calls `mended`. Nothing is
decided here. The log holds every event; status shows the newest of these sentences.
"""

from collections import Counter, deque
from datetime import UTC, datetime

from runtime.clock import Clock

LEDGER = "ledger"
CHECKPOINT = "checkpoint"
JOURNAL = "journal"
STATE = "state"
PARTS = (LEDGER, CHECKPOINT, JOURNAL, STATE)
_KEPT = 8


class DamageRecord:
    """Counts by part, and the newest sentences."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.found_by_part: Counter[str] = Counter(dict.fromkeys(PARTS, 0))
        self.mended_by_part: Counter[str] = Counter(dict.fromkeys(PARTS, 0))
        self._sentences: deque[str] = deque(maxlen=_KEPT)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The newest sentences, oldest first, each with its time."""
        return tuple(self._sentences)

    def found(self, part: str, what: str) -> None:
        """Note that a part is damaged; `what` says where and why."""
        self.found_by_part[part] += 1
        self._say(f"{part} damaged: {what}")

    def mended(self, part: str, what: str) -> None:
        """Note that a part is repaired; `what` says how."""
        self.mended_by_part[part] += 1
        self._say(f"{part} repaired: {what}")

    def _say(self, sentence: str) -> None:
        self._sentences.append(f"{utc_text(self._clock.wall_ms())} {sentence}")


def utc_text(wall_ms: int) -> str:
    """Return milliseconds since 1970 as UTC text, such as 2027-01-15T08:00:00Z."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
