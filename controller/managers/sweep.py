"""Divides the partitions that one event of a broker touches into rounds.

A broker may hold hundreds of thousands of replicas. Its event is then written in rounds. Each round
is a decision of its own, and other decisions come in between.

Invariant: every state between two rounds is valid. The broker has left some ISRs and is otherwise
as before. The record that changes the broker itself comes in the last round. That round looks at
all partitions of the broker again, because topics may have been created in between.

If the leader goes, no event stays half done: its cause still exists, so the next leader decides it
again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import chain, islice

from controller.result import Decide, Decided
from metadata.image import MetadataImage
from metadata.key_runs import KeyRuns
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionChangeRecord

ROUND = 256
"""The most partitions that a round changes. Their records fit into one batch."""
_SORTED_AT_ONCE = ROUND
_STEP = 64

Rank = Callable[[PlainPartitionKey], int | None]
"""Returns 0: change this partition first; 1: change it last; None: leave it alone."""
Change = Callable[[PlainPartitionKey], PartitionChangeRecord | None]
"""Returns the change of a partition; None if nothing changes."""
Changes = Generator[None, None, list[PartitionChangeRecord]]
IsLeaving = Callable[[int, bytes], bool]
"""Broker and log directory → whether rounds are under way that take the replica out of ISRs."""


class Sweep:
    """How far the rounds of one event are."""

    def __init__(self, at_most: int | None = None) -> None:
        """`at_most`: changes per round; None: all in one round."""
        self._at_most = at_most
        self._left: Iterator[PlainPartitionKey] = iter(())
        self.begun = False
        """A round was decided that was not the last."""
        self.more = False
        """The round that was decided just now is not the last."""
        self.electing = False
        """The event is an unfencing. Its first round has unfenced the broker."""
        self.leaving: int | None = None
        """The broker that leaves the ISRs. No leader may bring it back between two rounds."""
        self.directories: frozenset[bytes] | None = None
        """With `leaving`: it leaves only with its replicas in these log directories; None: all."""
        self.broker_epoch = -1
        """The broker epoch in the first round of a fencing; else -1."""
        self.leaves_elsewhere: IsLeaving = lambda _broker_id, _directory: False
        """Whether other events, with rounds under way, take such a replica out of ISRs.

        No round elects it. Where leaders may be elected uncleanly, two events would otherwise
        elect the broker of each other again and again, and none would end.
        """

    def takes_out(self, broker_id: int, directory: bytes) -> bool:
        """Return whether a replica in this log directory of a broker leaves the ISR."""
        directories = self.directories
        return self.leaving == broker_id and (directories is None or directory in directories)

    def changes(
        self, keys: Callable[[], Iterable[PlainPartitionKey]], rank: Rank, change: Change
    ) -> Changes:
        """Return the changes of the next round, in the order of the partitions.

        If there are several rounds, partitions of rank 0 come before those of rank 1. A round that
        reaches the end of the keys looks at all keys again, because it may be the last one.
        """
        found = yield from self._collect(change)
        if found is None:
            self._left = yield from _sorted(keys(), rank)
            found = yield from self._collect(change, is_all=True)
        assert found is not None
        return (yield from in_order(found))

    def _collect(
        self, change: Change, *, is_all: bool = False
    ) -> Generator[None, None, list[PartitionChangeRecord] | None]:
        """Take the changes of one round. None if the keys end, unless they are all (`is_all`)."""
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
    """Sort in steps; keys of rank 0 come before those of rank 1."""
    first, last = KeyRuns(), KeyRuns()
    for number, key in enumerate(keys, start=1):
        ranked = rank(key)
        if ranked is not None:
            (last if ranked else first).add(key)
        if number % _STEP == 0:
            yield
    return chain(first.in_order(), last.in_order())


def in_order(found: list[PartitionChangeRecord]) -> Changes:
    """Sort in steps, in the order of the partitions.

    A list of a few ascending parts, as a sweep finds it, becomes no more parts than that. Any other
    list becomes parts of `_SORTED_AT_ONCE`, which are merged.
    """
    for start in range(0, len(found), _SORTED_AT_ONCE):
        if start:
            yield
        end = start + _SORTED_AT_ONCE
        found[start:end] = sorted(found[start:end], key=_key_of)
    if len(found) <= _SORTED_AT_ONCE:
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


def in_rounds(
    decide: Callable[[MetadataImage, Sweep], Decided], sweep: Sweep | None = None
) -> Decide:
    """Return a decision whose rounds share one sweep. Submit it to the proposer only once."""
    shared = a_sweep() if sweep is None else sweep
    return lambda image: decide(image, shared)


def a_sweep() -> Sweep:
    """Return a sweep for the rounds of one event."""
    return Sweep(ROUND)
