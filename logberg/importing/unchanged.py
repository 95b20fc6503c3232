"""Reads a store that has no snapshots as if it had: again, until two readings are equal.

Why this is consistent: a node that shows the same change in two readings did not change between
them. So at the moment between the readings, all nodes were as they were read.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from logberg.importing.source_error import SourceError

Node = TypeVar("Node")


def read_unchanged(read: Callable[[], Sequence[Node]], most: int) -> Sequence[Node]:
    """Return what two readings in a row agree on. Raises SourceError after `most` readings.

    A node must come with the number of its last change: data that changes and changes back differs.
    """
    before = read()
    for _ in range(most - 1):
        after = read()
        if after == before:
            return after
        before = after
    raise SourceError(
        f"the source changed while it was read, {most} times in a row: stop what writes to it, "
        "or try again at a quieter time"
    )
