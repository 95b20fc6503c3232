"""Counts how much work is done between two yields: operations, not time.

It counts each look-up in a map of the image, each entry that is iterated, each partition that is
placed, and each record that is converted to JSON.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from controller.http import watch
from controller.leader import changes
from controller.managers import placement
from metadata.buckets import BucketMap
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.sorted_keys import SortedKeys

LIMIT = 6_000
"""Operations in one slice: some 5 ms of them."""


class Counter:
    """Counts operations, and the most between two calls of `slice_ends`."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    def slice_ends(self) -> None:
        self.most = max(self.most, self.now)
        self.total += self.now
        self.now = 0

    def each(self, entries: Iterator[Any]) -> Iterator[Any]:
        for entry in entries:
            self.now += 1
            yield entry


def counting(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Count from now on, until the test ends."""
    made = Counter()

    def lookups(owner: Any, name: str) -> None:
        look = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            made.now += 1
            return look(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    def iterations(owner: Any, name: str, *, at_once: bool) -> None:
        iterate = getattr(owner, name)

        def counted(self: Any, *args: Any) -> Any:
            if at_once:  # It sorts all before it gives the first.
                made.now += len(self)
            return made.each(iterate(self, *args))

        monkeypatch.setattr(owner, name, counted)

    lookups(BucketMap, "__getitem__")
    lookups(BucketMap, "get")
    iterations(BucketMap, "__iter__", at_once=True)
    iterations(BucketMap, "unordered_items", at_once=False)
    iterations(PartitionMap, "items", at_once=False)
    iterations(PartitionMap, "unordered_items", at_once=False)
    iterations(PartitionSet, "__iter__", at_once=False)
    iterations(SortedKeys, "__iter__", at_once=False)
    iterations(SortedKeys, "after", at_once=False)
    iterations(watch, "iterate_records", at_once=False)
    lookups(changes, "record_to_json")
    lookups(placement, "_one")
    return made


def sliced(counter: Counter, decision: Generator[None, None, Any]) -> Any:
    """Carry out a decision in slices; returns its result."""
    while True:
        try:
            next(decision)
        except StopIteration as ended:
            counter.slice_ends()
            return ended.value
        counter.slice_ends()
