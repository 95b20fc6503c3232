"""Counts operations: each line of Python that is executed, and each entry that is iterated.

Entries are those of maps and of sorted lists of an image. Sorting a map counts all of its entries.
Time is not counted, so the tests that use this say the same on a busy machine. `check` compares
what the same request costs on a small and on a large stage.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import pytest

from metadata.buckets import BucketMap
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.sorted_keys import SortedKeys
from tests.unit.controller.cluster import Cluster

LEEWAY = 300
"""Operations. A bucket or a page of a map has some entries more or fewer in a larger map."""
TRIES = 3
"""The least of them counts, so that work that only happens now and then is left out."""
Counting = Callable[[], object]


class StageWithCluster(Protocol):
    """What a request is asked on."""

    @property
    def cluster(self) -> Cluster: ...


S = TypeVar("S", bound=StageWithCluster)


class Counted:
    """Counts operations inside a `with` block."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for owner, name in (
            (BucketMap, "__iter__"),
            (BucketMap, "unordered_items"),
            (PartitionMap, "unordered_items"),
            (PartitionSet, "__iter__"),
            (SortedKeys, "__iter__"),
            (SortedKeys, "after"),
        ):
            monkeypatch.setattr(owner, name, self._each(getattr(owner, name), owner is BucketMap))

    def _each(self, iterate: Any, is_map: bool) -> Any:
        def counted(keys: Any, *args: Any) -> Iterator[Any]:
            if is_map and not args and iterate.__name__ == "__iter__":
                self.count += len(keys)  # It sorts all before it gives the first.
            for entry in iterate(keys, *args):
                self.count += 1
                yield entry

        return counted

    def __enter__(self) -> "Counted":
        self.count = 0
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, _frame: Any, _event: str, _argument: Any) -> Any:
        self.count += 1
        return self._trace


def check(
    what: str, prepare: Callable[[S], Counting], few: S, many: S, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request costs at most half as much again on the large stage."""
    counted = Counted(monkeypatch)
    small, large = least(prepare, few, counted), least(prepare, many, counted)
    print(f"{what}: {small:,} and {large:,}")
    assert small > 100, "the counter doesn't see what is done"
    assert large <= 1.5 * small + LEEWAY


def least(prepare: Callable[[S], Counting], stage: S, counted: Counted) -> int:
    """Return how many operations a request takes."""
    counts = []
    for _ in range(TRIES):
        count = prepare(stage)
        stage.cluster.run(0.02)  # What was under way comes to its end.
        with counted:
            count()
        counts.append(counted.count)
        stage.cluster.run(0.02)
    return min(counts)
