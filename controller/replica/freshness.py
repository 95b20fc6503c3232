"""How old an answer from this node's own image may be.

Rule: the quorum tells the latest moment whose every acknowledgement it has delivered
(`Quorum.current_at`); from when the image holds all that was delivered then, an answer is as old
as that moment, on a leader too: one that was deposed and doesn't know it yet grows older like
everybody else. Until anything is told the age is not known: timestamps are of other clocks.
"""

from collections import deque

from metadata.image import MetadataImage

_REMEMBERED = 256


class ImageFreshness:
    """From when what was delivered is current; the oldest not in the image yet comes first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._current_at: float | None = None

    def told(self, offset: int, image: MetadataImage, moment: float) -> None:
        """All acknowledged before `moment` (monotonic seconds) lies below `offset`."""
        self._reach(image)
        if self._waiting and self._waiting[-1] == (offset, moment):
            return
        if len(self._waiting) < _REMEMBERED:
            self._waiting.append((offset, moment))

    def age_ms(self, image: MetadataImage, now: float) -> int | None:
        """Return how long ago `image` was surely current; None: not known."""
        self._reach(image)
        if self._current_at is None:
            return None
        return max(int((now - self._current_at) * 1000), 0)

    def _reach(self, image: MetadataImage) -> None:
        while self._waiting and self._waiting[0][0] <= image.offset:
            moment = self._waiting.popleft()[1]
            self._current_at = max(moment, self._current_at or moment)
