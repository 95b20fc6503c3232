"""Places the replicas of a new topic: striped over racks, live brokers first.

This is a pure function of its arguments and of the randomness that it is given. The leader calls it
once and writes the outcome into the log. Replay never places anything.

The order is that of Kafka's StripedReplicaPlacer, with two differences. Fenced brokers are used
only when the live ones of *all* racks are used up. And a rack's start moves one step further each
time the walk comes back to the same rack and the same start. So leaders are even also where the
number of racks and the size of a rack have a common factor.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from typing import NamedTuple

from runtime.randomness import Random


class Candidate(NamedTuple):
    """A broker that may get replicas. A broker in controlled shutdown may not."""

    broker_id: int
    rack: str | None
    fenced: bool


class PlacementError(Exception):
    """The replication factor is not possible. The message says why."""


class _Ring:
    """The brokers of one rack in one state, read from a start that moves."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self.start = random.randrange(len(self.brokers)) if self.brokers else 0
        self.taken = 0
        self.placements = 0

    def take(self) -> int | None:
        """Return the next broker that this partition doesn't use yet; None if it uses all."""
        if self.taken == len(self.brokers):
            return None
        broker = self.brokers[(self.start + self.taken) % len(self.brokers)]
        self.taken += 1
        return broker

    def next_partition(self, racks: int) -> None:
        """Move the start by one, or by two when the walk is back at the same rack and start."""
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
    """Raise PlacementError if `place` can't place replicas on these brokers."""
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

    The replicas of a partition are distinct, and the first one is never fenced. Raises
    PlacementError.
    """
    check_placement(candidates, replication_factor)
    # Brokers without a rack count as one rack, which sorts first.
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
            # Without this, the same groups of brokers would share all their partitions.
            for ring in (*live, *fenced):
                ring.shuffle(random)


def _one(
    live: Sequence[_Ring], fenced: Sequence[_Ring], start: int, replication_factor: int
) -> tuple[int, ...]:
    """Return the replicas of one partition: round robin over racks, fenced brokers last."""
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
