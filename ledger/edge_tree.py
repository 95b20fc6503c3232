"""The right edge of the tree over batches: what a node has that began from a checkpoint.

Rule: a frontier and the batches behind it give the root at each size from there on, and nothing
else: no proof and no tile of what is before. The frontier came from elsewhere, so whoever signs
with it first compares a root with one that a majority signed (`believed`).
"""

from collections import deque
from typing import Final

from ledger.batch import Batch
from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash

_STEP: Final = 64
"""The frontier is remembered after so many batches."""
_STEPS_KEPT: Final = 64
"""So many of these are kept: heads of the newest 4,096 batches can be signed."""


class EdgeTree:
    """The tree from a frontier on."""

    def __init__(self, base: Frontier, end_offset: int) -> None:
        """`end_offset`: where the last batch under the frontier ends."""
        self._newest = base
        self._steps: deque[Frontier] = deque([base])
        self._leaves: deque[bytes] = deque()
        """The hashes behind the first of the steps."""
        self.end_offset = end_offset
        self.believed = False
        """A majority has signed a root that this tree gives, too."""

    @property
    def size(self) -> int:
        """How many batches the log has."""
        return self._newest.size

    @property
    def first(self) -> int:
        """The smallest size whose root it knows."""
        return self._steps[0].size

    def frontier(self) -> Frontier:
        """Return the frontier at its end."""
        return self._newest

    def append(self, batch: Batch) -> bool:
        """Take the next batch; False: it is not the next one."""
        if batch.header.base_offset != self.end_offset:
            return False
        self.end_offset = batch.header.end_offset
        leaf = leaf_hash(batch.hash)
        self._leaves.append(leaf)
        self._newest = self._newest.append(leaf)
        if self._newest.size - self._steps[-1].size == _STEP:
            self._steps.append(self._newest)
            if len(self._steps) > _STEPS_KEPT:
                self._steps.popleft()
                for _ in range(_STEP):
                    self._leaves.popleft()
        return True

    def root(self, size: int) -> bytes:
        """Return the root of the first `size` batches. Raises LedgerError."""
        if not self.first <= size <= self.size:
            raise LedgerError(f"the edge here has {self.first} to {self.size} batches, not {size}")
        number = (size - self.first) // _STEP
        frontier = self._steps[number]
        begin = number * _STEP
        for at in range(begin, begin + size - frontier.size):
            frontier = frontier.append(self._leaves[at])
        return frontier.root()
