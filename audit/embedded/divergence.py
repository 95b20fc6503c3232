"""The job `divergence`: where a replica's log begins to differ from the majority's.

Rule: the frames of all replicas are walked side by side by base offset, so memory holds one frame
of each. Hashes are chained: a replica that differs once differs from there on, and is named once.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from audit.embedded.batches import frames
from audit.places.replicas import Replica
from audit.reading.feed import Question

Row = tuple[Any, ...]


def divergence(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.DIVERGENCE`."""
    common_end = min(_end(replica, question.up_to) for replica in question.replicas)
    walks = [_hashes(replica, common_end) for replica in question.replicas]
    named: set[str] = set()
    rows: list[Row] = []
    for base, group in groupby(heapq.merge(*walks), key=itemgetter(0)):
        hashes = {name: hash_ for _, name, hash_ in group}
        agreed = _majority(list(hashes.values()))
        for name, hash_ in sorted(hashes.items()):
            if hash_ != agreed and name not in named:
                named.add(name)
                rows.append((base, name, hash_.hex(), None if agreed is None else agreed.hex()))
    return rows


def _majority(hashes: list[bytes]) -> bytes | None:
    """Return the hash that more than half have; None if there is none."""
    (most, count), *_ = Counter(hashes).most_common(1)
    return most if 2 * count > len(hashes) else None


def _hashes(replica: Replica, end: int) -> Iterator[tuple[int, str, bytes]]:
    return ((found.base_offset, replica.name, found.hash) for found in frames(replica, end))


def _end(replica: Replica, up_to: int | None) -> int:
    end = 0
    for found in frames(replica, up_to):
        end = found.end_offset
    return end
