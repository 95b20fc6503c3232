"""What was found damaged on this node in this life, and what became of it: for status and metrics.

Rule: whoever finds damage says so here, and whoever puts it right too; nothing is decided here.
The log has every event; this is what a person sees who asks how things stand.
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
        """The newest, oldest first, each with its time."""
        return tuple(self._sentences)

    def found(self, part: str, what: str) -> None:
        """Something is wrong with a part."""
        self.found_by_part[part] += 1
        self._say(f"{part} damaged: {what}")

    def mended(self, part: str, what: str) -> None:
        """It is put right."""
        self.mended_by_part[part] += 1
        self._say(f"{part} repaired: {what}")

    def _say(self, sentence: str) -> None:
        self._sentences.append(f"{utc_text(self._clock.wall_ms())} {sentence}")


def utc_text(wall_ms: int) -> str:
    """Return a time as people read it."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
