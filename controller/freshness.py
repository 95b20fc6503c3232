"""How old an answer from this node's own image may be.

Rule: a node is as current as the last thing that the leader told and that the image has reached:
the leader's digests name its newest offset, and from when the image holds that offset, the answer
is as old as the digest. What comes from our own journal, or from another standby, says nothing of
what the cluster knows. A message's way is not counted. Until a leader has told anything, the age
is that of the newest batch, by the wall clock.
"""

from collections import deque

from metadata.image import MetadataImage

_REMEMBERED = 256


class Freshness:
    """What leaders told, and when; the oldest that the image has not reached comes first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._current_at: float | None = None

    def told(self, offset: int, image: MetadataImage, now: float) -> None:
        """A leader's digest names `offset` as its newest; `now` is monotonic, in seconds."""
        self._reach(image)
        if len(self._waiting) < _REMEMBERED:
            self._waiting.append((offset, now))

    def age_ms(self, image: MetadataImage, now: float, wall_ms: int) -> int:
        """Return how long ago `image` was surely current."""
        self._reach(image)
        if self._current_at is None:
            return max(wall_ms - image.timestamp_ms, 0)
        return int((now - self._current_at) * 1000)

    def _reach(self, image: MetadataImage) -> None:
        while self._waiting and self._waiting[0][0] <= image.offset:
            self._current_at = self._waiting.popleft()[1]
