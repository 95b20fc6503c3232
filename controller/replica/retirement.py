"""Old images are freed bit by bit.

Rule: the image before a large change shares little with the one after it. When its last owner lets
go, 100,000 dicts are freed in one go: 70 ms in which the loop stands still. So whoever replaces an
image hands the old one in here, and its pages are dropped a few at a time.

What was visible may still be read by others: its pages are kept until these have let go. Nobody
else has seen what an open transaction had written so far (its branch). Its pages are dropped at
once, since each batch of the transaction leaves megabytes behind.
"""

from collections.abc import Generator
from typing import Any

from metadata.buckets import BucketMap
from metadata.image import MetadataImage
from metadata.image.topics import TopicsImage
from runtime.clock import Clock
from runtime.slices import run_in_slices

_LARGE = 256
"""Partitions that came or went, or records of a batch."""
_AFTER_S = 0.5
"""Until the others have let go."""
_PAGES = 8
"""Dropped in one go: some hundred dicts."""


class Retirement:
    """Keeps the pages of old images, and drops them in slices."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Any] = []
        self._dropping: list[Any] = []
        self._drops = False

    def __len__(self) -> int:
        """Pages that are still kept."""
        return len(self._waiting) + len(self._dropping)

    def replaced(self, before: MetadataImage, after: MetadataImage, records: int) -> None:
        """`after` takes the place of `before`, by a batch of so many records."""
        if before.transaction is not None:
            last = after if after.transaction is None else after.transaction.branch
            self._dropping += _pages(before.transaction.branch.topics, last.topics, records)
            self._begin()
        pages = _pages(before.topics, after.topics, records)
        if pages and not self._waiting:
            self._clock.call_later(_AFTER_S, self._waited)
        self._waiting += pages

    def released(self, image: MetadataImage) -> None:
        """Somebody who kept an image for long, while the state went on, lets go of it."""
        self._dropping += _all_pages(image.topics)
        self._begin()

    def _waited(self) -> None:
        self._dropping += self._waiting
        self._waiting = []
        self._begin()

    def _begin(self) -> None:
        if self._dropping and not self._drops:
            self._drops = True
            run_in_slices(self._clock, self._drop(), self._done)

    def _drop(self) -> Generator[None, None, None]:
        while self._dropping:
            del self._dropping[-_PAGES:]
            yield

    def _done(self) -> None:
        self._drops = False


def _pages(old: TopicsImage, new: TopicsImage, records: int) -> list[Any]:
    """Return the pages of maps that a large change has replaced."""
    came = abs(len(new.partitions) - len(old.partitions))
    if old is new or max(came, records) < _LARGE:
        return []
    pages = [*_of(old.partitions, new.partitions), *_of(old.leaderless, new.leaderless)]
    for broker_id, held in old.replicas_by_broker.unordered_items():
        pages += _of(held, new.replicas_by_broker.get(broker_id))
    return pages


def _all_pages(topics: TopicsImage) -> list[Any]:
    """Return the pages of the large maps. Those that newer images share cost nothing to drop."""
    maps: list[BucketMap[Any, Any]] = [topics.partitions, topics.leaderless]
    maps += (held for _, held in topics.replicas_by_broker.unordered_items())
    return [page for one in maps for page in one.pages()]


def _of(old: BucketMap[Any, Any], new: BucketMap[Any, Any] | None) -> list[Any]:
    return [] if old is new else old.pages()
