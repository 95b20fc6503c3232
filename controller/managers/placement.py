"""Where the replicas of a new topic go: striped over racks, live brokers first.

Rule: a pure function of its arguments and the dice it is handed. The leader rolls them once and
writes the outcome into the log; replay never places anything.

The walk is Kafka's StripedReplicaPlacer with two differences. Fenced brokers are taken only when
the live ones of *all* racks are used up. And a rack's start moves one step further each time the
walk has come back to the same rack and the same start, so that leaders stay even also where the
number of racks and the size of a rack share a factor.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from typing import NamedTuple

from runtime.randomness import Random


class Candidate(NamedTuple):
    """A broker that may be given replicas (one in controlled shutdown may not)."""

    broker_id: int
    rack: str | None
    fenced: bool


class PlacementError(Exception):
    """The replication factor can't be met; the message says why."""


class _Ring:
    """The brokers of one rack in one state, read from a start that moves."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self.start = random.randrange(len(self.brokers)) if self.brokers else 0
        self.taken = 0
        self.placements = 0

    def take(self) -> int | None:
        """The next broker that this partition has not used; None when all are."""
        if self.taken == len(self.brokers):
            return None
        broker = self.brokers[(self.start + self.taken) % len(self.brokers)]
        self.taken += 1
        return broker

    def next_partition(self, racks: int) -> None:
        """Move the start by one, and by one more when rack and start have met again."""
        self.taken = 0
        if not self.brokers:
            return
        self.placements += 1
        size = len(self.brokers)
        met_again = self.placements % (racks * size // gcd(racks, size)) == 0
        self.start = (self.start + (2 if met_again else 1)) % size

    def shuffle(self, random: Random) -> None:
        random.shuffle(self.brokers)


def check_placement(candidates: Sequence[Candidate], replication_factor: int) -> None:
    """Raise PlacementError unless `place` can answer for these brokers."""
    if replication_factor < 1:
        raise PlacementError(
            f"the replication factor is {replication_factor}; it must be 1 or more"
        )
    if replication_factor > len(candidates):
        raise PlacementError(
            f"the replication factor {replication_factor} is larger than the number of brokers "
            f"that can take replicas, {len(candidates)}"
        )
    if all(candidate.fenced for candidate in candidates):
        raise PlacementError("all brokers are fenced; none can lead a new partition")


def place(
    candidates: Sequence[Candidate], replication_factor: int, random: Random
) -> Iterator[tuple[int, ...]]:
    """Yield the replicas of one partition after another, without end.

    Distinct within a partition, the first one never fenced. Raises PlacementError.
    """
    check_placement(candidates, replication_factor)
    # "No rack" is a rack of its own and sorts first.
    names = sorted({(c.rack is not None, c.rack or "") for c in candidates})
    members = [
        [c for c in candidates if (c.rack is not None, c.rack or "") == name] for name in names
    ]
    live = [_Ring((c.broker_id for c in rack if not c.fenced), random) for rack in members]
    fenced = [_Ring((c.broker_id for c in rack if c.fenced), random) for rack in members]
    live_brokers = sum(len(ring.brokers) for ring in live)
    start = random.randrange(len(names))
    placed = 0
    while True:
        yield _one(live, fenced, start, replication_factor)
        placed += 1
        start = (start + 1) % len(names)
        for ring in (*live, *fenced):
            ring.next_partition(len(names))
        if placed % live_brokers == 0:
            # Else the same brokers would share their partitions for ever.
            for ring in (*live, *fenced):
                ring.shuffle(random)


def _one(
    live: Sequence[_Ring], fenced: Sequence[_Ring], start: int, replication_factor: int
) -> tuple[int, ...]:
    """The replicas of one partition: round robin over the racks, the fenced brokers last."""
    replicas: list[int] = []
    for rings in (live, fenced):
        exhausted = 0
        at = start
        while len(replicas) < replication_factor and exhausted < len(rings):
            broker = rings[at].take()
            if broker is None:
                exhausted += 1
            else:
                exhausted = 0
                replicas.append(broker)
            at = (at + 1) % len(rings)
        if len(replicas) == replication_factor:
            break
    return tuple(replicas)
