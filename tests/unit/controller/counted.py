"""Counts operations: each line of Python that is executed, and each entry that is iterated.

Entries are those of maps and of sorted lists of an image. Sorting a map counts all of its entries.
Time is not counted, so the tests that use this say the same on a busy machine.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from metadata.buckets import BucketMap
from metadata.image.partition_map import PartitionMap
from metadata.image.partition_set import PartitionSet
from metadata.image.sorted_keys import SortedKeys


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
