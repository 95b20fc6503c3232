"""Frees old images bit by bit.

The image before a large change shares little with the one after it. If it were freed at once,
Python would free 100,000 dicts in one go: 70 ms in which the event loop stands still. So the code
that replaces an image hands the old one in here, and its pages are dropped a few at a time.

A published image may still be in use by readers. Its pages are kept for half a second, until those
have let go. The branch of an open transaction has no other readers. Its pages are dropped at once,
because each batch of the transaction leaves megabytes behind.
"""

from collections.abc import Generator
from typing import Any

from metadata.buckets import BucketMap
from metadata.image import MetadataImage
from metadata.image.topics import TopicsImage
from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

_LARGE = 256
"""A change is large from so many records, or so many partitions that came or went."""
_AFTER_S = 0.5
"""Time for readers to let go of a published image."""
_PAGES = 8
"""Pages dropped in one step: some hundred dicts."""


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
        """`after` replaces `before`, by a batch of so many records."""
        if before.transaction is not None:
            last = after if after.transaction is None else after.transaction.branch
            self._dropping += _pages(before.transaction.branch.topics, last.topics, records)
            self._begin()
        pages = _pages(before.topics, after.topics, records)
        if pages and not self._waiting:
            self._clock.call_later(_AFTER_S, self._waited)
        self._waiting += pages

    def released(self, image: MetadataImage) -> None:
        """A reader lets go of an image that it has kept for long."""
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
    """Return the pages of the maps that a change has replaced; none if the change is small."""
    came = abs(len(new.partitions) - len(old.partitions))
    if old is new or max(came, records) < _LARGE:
        return []
    pages = [*_of(old.partitions, new.partitions), *_of(old.leaderless, new.leaderless)]
    pages += _of(old.unpreferred, new.unpreferred)
    for broker_id, held in old.replicas_by_broker.unordered_items():
        pages += _of(held, new.replicas_by_broker.get(broker_id))
    return pages


def _all_pages(topics: TopicsImage) -> list[Any]:
    """Return the pages of the large maps. Dropping a page that a newer image shares is cheap."""
    maps: list[BucketMap[Any, Any]] = [topics.partitions, topics.leaderless, topics.unpreferred]
    maps += (held for _, held in topics.replicas_by_broker.unordered_items())
    return [page for one in maps for page in one.pages()]


def _of(old: BucketMap[Any, Any], new: BucketMap[Any, Any] | None) -> list[Any]:
    return [] if old is new else old.pages()
