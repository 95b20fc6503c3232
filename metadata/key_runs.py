"""Sorts the keys of many partitions in short steps.

Rule: the keys are kept in runs, each sorted when it is full, and the runs are merged as the keys
are taken. A run is one `bytes` object. A list would refer to its keys, and the garbage collector
would visit all of them: for 100,000 keys that stops the loop for 17 ms.
"""

from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from struct import Struct
from typing import cast

from metadata.partition_key import PlainPartitionKey

_KEY = Struct(">16sI")
"""A topic's id and the partition's number. Packed keys sort as the keys do."""
_RUN = 512
_STEP = 64


class KeyRuns:
    """Keys in sorted runs."""

    def __init__(self) -> None:
        self._run: list[bytes] = []
        self._full: list[bytes] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: PlainPartitionKey) -> None:
        """Add a key, which must not be among them."""
        self._count += 1
        self._run.append(_KEY.pack(*key))
        if len(self._run) == _RUN:
            self._close()

    def in_order(self) -> Iterator[PlainPartitionKey]:
        """Return an iterator over the keys, sorted. Nothing may be added from now on."""
        self._close()
        rows = merge(*map(_KEY.iter_unpack, self._full))
        return cast("Iterator[PlainPartitionKey]", rows)

    def _close(self) -> None:
        self._run.sort()
        self._full.append(b"".join(self._run))
        self._run.clear()


def sorted_keys(keys: Iterable[PlainPartitionKey | None]) -> Generator[None, None, KeyRuns]:
    """Sort keys in steps. None counts as a step and is left out."""
    runs = KeyRuns()
    for number, key in enumerate(keys, start=1):
        if key is not None:
            runs.add(key)
        if number % _STEP == 0:
            yield
    return runs
