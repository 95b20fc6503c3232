"""The partitions that one event of a broker touches, some thousand at a time.

Rule: a broker may hold hundreds of thousands of replicas. Its event is then written in rounds, each
of them a decision of its own, between which others are decided. Every state between two rounds is
a valid one: the broker has left some ISRs and is as it was otherwise. The record that changes the
broker itself comes in the last round, which looks at all its partitions again, since topics may
have been created meanwhile. A leader that goes leaves no half-done event behind: what made the
broker's event necessary makes its successor decide it again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import chain, islice

from controller.result import Decide, Decided
from metadata.image import MetadataImage
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionChangeRecord

ROUND = 256
"""Partitions that a round changes: the records fit into one batch."""
_RUN = 512
"""Keys that are sorted in one go."""
_SORTED_AT_ONCE = ROUND
_STEP = 64

Rank = Callable[[PlainPartitionKey], int | None]
"""0: among the first; 1: among the last; None: not concerned."""
Change = Callable[[PlainPartitionKey], PartitionChangeRecord | None]
"""What becomes of a partition now; None: nothing."""
Changes = Generator[None, None, list[PartitionChangeRecord]]


class Sweep:
    """Where the rounds of one event have come to."""

    def __init__(self, at_most: int | None = None) -> None:
        """`at_most` changes a round; None: all in one."""
        self._at_most = at_most
        self._left: Iterator[PlainPartitionKey] = iter(())
        self.begun = False
        """A round was decided, and it was not the last."""
        self.more = False
        """The round that was just decided is not the last."""
        self.electing = False
        """Of an unfencing, whose first round has unfenced the broker."""
        self.broker_epoch = -1
        """Of the process that the first round was about, where that matters."""

    def changes(
        self, keys: Callable[[], Iterable[PlainPartitionKey]], rank: Rank, change: Change
    ) -> Changes:
        """Return the changes of the next round, in the order of the partitions.

        Of several rounds partitions of rank 1 come after those of rank 0. A round that comes to the
        end of what the first one found looks for all of it again: it may be the last.
        """
        found = yield from self._collect(change)
        if found is None:
            self._left = yield from _sorted(keys(), rank)
            found = yield from self._collect(change, is_all=True)
        assert found is not None
        return (yield from _in_order(found))

    def _collect(
        self, change: Change, *, is_all: bool = False
    ) -> Generator[None, None, list[PartitionChangeRecord] | None]:
        """Take what a round has room for; None at the end, unless the keys are all that is."""
        found: list[PartitionChangeRecord] = []
        for number, key in enumerate(self._left, start=1):
            record = change(key)
            if record is not None:
                if len(found) == self._at_most:
                    self._left = chain((key,), self._left)
                    self.more = self.begun = True
                    return found
                found.append(record)
            if number % _STEP == 0:
                yield
        self.more = False
        return found if is_all else None


def _sorted(
    keys: Iterable[PlainPartitionKey], rank: Rank
) -> Generator[None, None, Iterator[PlainPartitionKey]]:
    """Sort in steps: short runs, which are merged as the keys are taken."""
    runs: tuple[list[list[PlainPartitionKey]], list[list[PlainPartitionKey]]] = ([], [])
    rest = iter(keys)
    while some := list(islice(rest, _RUN)):
        ranks = [(rank(key), key) for key in some]
        for number in (0, 1):
            if run := sorted(key for ranked, key in ranks if ranked == number):
                runs[number].append(run)
        if len(some) == _RUN:
            yield
    return chain(merge(*runs[0]), merge(*runs[1]))


def _in_order(found: list[PartitionChangeRecord]) -> Changes:
    """Sort in steps what stands there in few ascending rows, as `_sorted` gives it: one a rank."""
    if len(found) <= _SORTED_AT_ONCE:
        found.sort(key=_key_of)
        return found
    starts = [0]
    for number in range(1, len(found)):
        if _key_of(found[number]) < _key_of(found[number - 1]):
            starts.append(number)
        if number % _STEP == 0:
            yield
    if len(starts) == 1:
        return found
    ends = [*starts[1:], len(found)]
    rows = merge(*(found[i:j] for i, j in zip(starts, ends, strict=True)), key=_key_of)
    ordered: list[PartitionChangeRecord] = []
    while some := list(islice(rows, _STEP)):
        ordered += some
        yield
    return ordered


def _key_of(record: PartitionChangeRecord) -> PlainPartitionKey:
    return record.topic_id, record.partition_id


def in_rounds(decide: Callable[[MetadataImage, Sweep], Decided]) -> Decide:
    """Make a decision whose rounds share a sweep; it must be the only one at a time that does."""
    sweep = Sweep(ROUND)
    return lambda image: decide(image, sweep)
