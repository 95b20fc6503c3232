"""Names the pages of an image that a change has replaced, so that they can be freed bit by bit.

The image before a large change shares little with the one after it. If it were freed at once,
Python would free 100,000 dicts in one go: 70 ms in which the event loop stands still. So the owner
of an image hands these pages to `runtime.loop.retirement`.

A published image may still be in use by readers. The branch of an open transaction has no other
readers, and each batch of the transaction leaves megabytes of it behind. So the function that
compares two images names the two apart.
"""

from typing import Any, NamedTuple

from metadata.image.metadata_image import MetadataImage
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.topics import TopicsImage

_Paged = PartitionMap | PartitionSet

_LARGE = 256
"""A change is large from so many records, or so many partitions that came or went."""


class OldPages(NamedTuple):
    """Pages that a newer image doesn't have, or may not have."""

    published: list[Any]
    """Of the image that readers see: they may still use it."""
    unread: list[Any]
    """Of a branch: nobody uses them any more."""


def replaced_pages(before: MetadataImage, after: MetadataImage, records: int) -> OldPages:
    """Return what is left of `before`, which `after` replaces by so many records."""
    unread: list[Any] = []
    if before.transaction is not None:
        last = after if after.transaction is None else after.transaction.branch
        unread = _pages(before.transaction.branch.topics, last.topics, records)
    return OldPages(_pages(before.topics, after.topics, records), unread)


def all_pages(image: MetadataImage) -> list[Any]:
    """Return the pages of the large maps. Dropping a page that a newer image shares is cheap."""
    topics = image.topics
    maps: list[_Paged] = [topics.partitions, topics.leaderless, topics.unpreferred]
    maps += (held for _, held in topics.replicas_by_broker.unordered_items())
    return [page for one in maps for page in one.pages()]


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


def _of(old: _Paged, new: _Paged | None) -> list[Any]:
    return [] if old is new else old.pages()
