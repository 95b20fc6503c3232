"""Places the replicas of a new topic: striped over racks, live brokers first.

This is a pure function of its arguments and of the randomness that it is given. The leader calls it
once and writes the outcome into the log. Replay never places anything.

The order is that of Kafka's StripedReplicaPlacer, with two differences. Fenced brokers are used
only when the live ones of *all* racks are used up. And a rack's start moves one step further each
time the walk comes back to the same rack and the same start. So leaders are even also where the
number of racks and the size of a rack have a common factor.

The image holds the brokers of each rack in order. So the cost of a partition follows its replicas
and the racks, and not the brokers.
"""

from collections.abc import Iterator, Sequence
from math import gcd

from metadata.image.brokers import Rack
from metadata.image.sorted_keys import SortedKeys
from runtime.randomness import Random


class PlacementError(Exception):
    """The replication factor is not possible. The message says why."""


class _Ring:
    """The brokers of one rack in one state, read from a start that moves.

    The start moves by one with each partition, and by two when the walk is back at the same rack
    and start. So it follows from the number of the partition.
    """

    def __init__(self, brokers: SortedKeys[int], racks: int, random: Random) -> None:
        self._brokers: SortedKeys[int] | list[int] = brokers
        self._size = len(brokers)
        self._start = random.randrange(self._size) if self._size else 0
        self._round = racks * self._size // gcd(racks, self._size)
        """After so many partitions the walk is back at the same rack and start."""
        self._partition = -1
        self._first = 0
        self._taken = 0

    def take(self, partition: int) -> int | None:
        """Return the next broker that this partition doesn't use yet; None if it uses all."""
        if partition != self._partition:
            self._partition, self._taken = partition, 0
            again = partition // self._round if self._size else 0
            self._first = self._start + partition + again
        if self._taken == self._size:
            return None
        broker = self._brokers[(self._first + self._taken) % self._size]
        self._taken += 1
        return broker

    def shuffle(self, random: Random) -> None:
        brokers = list(self._brokers)
        random.shuffle(brokers)
        self._brokers = brokers


def check_placement(racks: Sequence[Rack], replication_factor: int) -> None:
    """Raise PlacementError if `place` can't place replicas on these brokers."""
    if replication_factor < 1:
        raise PlacementError(
            f"the replication factor is {replication_factor}; it must be 1 or more"
        )
    live = sum(len(rack.live) for rack in racks)
    candidates = live + sum(len(rack.fenced) for rack in racks)
    if replication_factor > candidates:
        raise PlacementError(
            f"the replication factor {replication_factor} is larger than the number of brokers "
            f"that can take replicas, {candidates}"
        )
    if not live:
        raise PlacementError("all brokers are fenced; none can lead a new partition")


def place(
    racks: Sequence[Rack], replication_factor: int, random: Random
) -> Iterator[tuple[int, ...]]:
    """Yield the replicas of one partition after another, without end.

    `racks` are in order. The replicas of a partition are distinct, and the first one is never
    fenced. Raises PlacementError.
    """
    check_placement(racks, replication_factor)
    live = [_Ring(rack.live, len(racks), random) for rack in racks]
    fenced = [_Ring(rack.fenced, len(racks), random) for rack in racks]
    live_brokers = sum(len(rack.live) for rack in racks)
    start = random.randrange(len(racks))
    placed = 0
    while True:
        yield _one(live, fenced, placed, (start + placed) % len(racks), replication_factor)
        placed += 1
        if placed % live_brokers == 0:
            # Without this, the same groups of brokers would share all their partitions.
            for ring in (*live, *fenced):
                ring.shuffle(random)


def _one(
    live: Sequence[_Ring],
    fenced: Sequence[_Ring],
    partition: int,
    start: int,
    replication_factor: int,
) -> tuple[int, ...]:
    """Return the replicas of one partition: round robin over racks, fenced brokers last."""
    replicas: list[int] = []
    for rings in (live, fenced):
        exhausted = 0
        at = start
        while len(replicas) < replication_factor and exhausted < len(rings):
            broker = rings[at].take(partition)
            if broker is None:
                exhausted += 1
            else:
                exhausted = 0
                replicas.append(broker)
            at = (at + 1) % len(rings)
        if len(replicas) == replication_factor:
            break
    return tuple(replicas)
