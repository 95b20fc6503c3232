"""How old an answer from this node's own image may be.

The quorum names a moment such that everything acknowledged before it has been delivered here
(`Quorum.current_at`). Once the image holds everything that was delivered by then, the image's age
is the time since that moment. This holds on a leader too: one that was deposed and doesn't know it
yet shows a growing age.

Until the quorum has named a moment, the age is unknown. Timestamps in the log don't help: other
nodes' clocks made them.
"""

from collections import deque

from metadata.image import MetadataImage

_REMEMBERED = 256


class ImageFreshness:
    """Pairs of offset and moment that the image has not reached yet, the oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._current_at: float | None = None

    def told(self, offset: int, image: MetadataImage, moment: float) -> None:
        """Everything acknowledged before `moment` (monotonic seconds) is below `offset`."""
        self._reach(image)
        if self._waiting and self._waiting[-1] == (offset, moment):
            return
        if len(self._waiting) < _REMEMBERED:
            self._waiting.append((offset, moment))

    def age_ms(self, image: MetadataImage, now: float) -> int | None:
        """Return how many ms ago `image` was surely current; None if that is not known.

        `now`: monotonic seconds.
        """
        self._reach(image)
        if self._current_at is None:
            return None
        return max(int((now - self._current_at) * 1000), 0)

    def _reach(self, image: MetadataImage) -> None:
        while self._waiting and self._waiting[0][0] <= image.offset:
            moment = self._waiting.popleft()[1]
            self._current_at = max(moment, self._current_at or moment)
