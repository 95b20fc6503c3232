"""Old images are freed bit by bit.

Rule: the image before a large change shares little with the one after it, and when its last owner
lets go, 100,000 dicts are freed in one go: 70 ms in which the loop stands still. So whoever
replaces an image hands the old one in here. Its pages are kept until everybody else has let go,
and are then dropped a few at a time.
"""

from collections.abc import Generator
from typing import Any

from metadata.buckets import BucketMap
from metadata.image import MetadataImage
from runtime.clock import Clock
from runtime.slices import run_in_slices

_LARGE = 1_024
"""Partitions that came or went, or records of a batch."""
_AFTER_S = 0.5
"""Until the others have let go."""
_PAGES = 8
"""Dropped in one go: some hundred dicts."""


class Retirement:
    """Keeps the pages of old images, and drops them in slices."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: list[Any] = []
        self._scheduled = False

    def __len__(self) -> int:
        """Pages that are still kept."""
        return len(self._pages)

    def replaced(self, before: MetadataImage, after: MetadataImage, records: int) -> None:
        """`after` takes the place of `before`, by a batch of so many records."""
        old, new = before.topics, after.topics
        came = abs(len(new.partitions) - len(old.partitions))
        if old is new or max(came, records) < _LARGE:
            return
        self._keep(old.partitions, new.partitions)
        self._keep(old.leaderless, new.leaderless)
        for broker_id, held in old.replicas_by_broker.unordered_items():
            self._keep(held, new.replicas_by_broker.get(broker_id))
        if self._pages and not self._scheduled:
            self._scheduled = True
            self._clock.call_later(_AFTER_S, self._begin)

    def _keep(self, old: BucketMap[Any, Any], new: BucketMap[Any, Any] | None) -> None:
        if old is not new:
            self._pages += old.pages()

    def _begin(self) -> None:
        run_in_slices(self._clock, self._drop(), self._done)

    def _drop(self) -> Generator[None, None, None]:
        while self._pages:
            del self._pages[-_PAGES:]
            yield

    def _done(self) -> None:
        self._scheduled = False
