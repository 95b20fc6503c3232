"""Plans reassignments that empty brokers: each of their replicas goes to another broker.

This is a pure function of an image. The plan keeps the place of the replica in its list, and so the
preferred leader where it can. It takes an active broker that has no replica of the partition and
takes new ones. It prefers a rack that no other replica of the partition is in, then the broker with
the fewest replicas, as the plan so far leaves them, then the smallest id.
"""

from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.image.brokers import RackName, rack_name, takes_replicas
from metadata.partition_key import PlainPartitionKey


class Move(NamedTuple):
    """A partition of the plan."""

    key: PlainPartitionKey
    before: tuple[int, ...]
    """The replicas that it has, but for those that a running reassignment removes."""
    replicas: tuple[int, ...]


class EmptyingPlan:
    """The plan for some brokers. Its moves are made one after another."""

    def __init__(self, image: MetadataImage, emptied: Collection[int]) -> None:
        """Raises LogbergError BROKER_ID_NOT_REGISTERED, INVALID_REPLICATION_FACTOR."""
        for broker_id in sorted(emptied):
            if image.cluster.brokers.get(broker_id) is None:
                raise LogbergError(
                    ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}"
                )
        self._image = image
        self._emptied = frozenset(emptied)
        self._takers = {
            rack.name: [
                (image.topics.replicas_on(broker_id), broker_id)
                for broker_id in rack.live
                if broker_id not in self._emptied
            ]
            for rack in image.cluster.racks
        }
        """By rack, a heap of the brokers that take replicas, the one with the fewest first."""
        for takers in self._takers.values():
            heapify(takers)
        if not any(self._takers.values()):
            raise LogbergError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "no other broker is online and takes replicas; start one first",
            )

    def keys(self) -> Iterator[PlainPartitionKey | None]:
        """Yield the partitions to move, each once, in no order.

        None stands for one that came before or stays, so that a caller can count its steps.
        """
        partitions = self._image.topics.partitions
        for broker_id in sorted(self._emptied):
            for key in self._image.topics.held_by(broker_id):
                held = [b for b in partitions[key].replicas if b in self._emptied]
                moves = min(held) == broker_id and self._stays(partitions[key])
                yield key if moves else None

    def move(self, key: PlainPartitionKey) -> Move:
        """Return the next partition of the plan.

        A replica for which there is no other broker stays where it is.
        """
        partition = self._image.topics.partitions[key]
        before = tuple(b for b in partition.replicas if b not in partition.removing)
        after = list(before)
        for place, broker_id in enumerate(before):
            if broker_id in self._emptied:
                chosen = self._chosen(after)
                if chosen is not None:
                    after[place] = chosen
        return Move(key, before, tuple(after))

    def _stays(self, partition: Partition) -> bool:
        """Return whether one of the brokers would hold the partition for good."""
        return any(b in self._emptied and b not in partition.removing for b in partition.replicas)

    def _chosen(self, replicas: list[int]) -> int | None:
        """Choose a broker that is not among the replicas, and count its new one; None: no other."""
        taken = {self._rack_of(b) for b in replicas if b not in self._emptied}
        free = [
            (name in taken, *first, name)
            for name, takers in self._takers.items()
            if (first := _first_besides(replicas, takers)) is not None
        ]
        if not free:
            return None
        _, held, broker_id, name = min(free)
        takers = self._takers[name]
        passed = _pass(replicas, takers)
        heapreplace(takers, (held + 1, broker_id))
        for taker in passed:
            heappush(takers, taker)
        return broker_id

    def _rack_of(self, broker_id: int) -> RackName:
        """Return a broker's rack. One that takes no replicas counts as one without a rack."""
        broker = self._image.cluster.brokers.get(broker_id)
        takes = broker is not None and broker.active and takes_replicas(broker)
        return rack_name(broker) if broker is not None and takes else (False, "")


_Taker = tuple[int, int]
"""(how many replicas it holds, its id): in this order brokers are chosen."""


def _pass(replicas: Collection[int], takers: list[_Taker]) -> list[_Taker]:
    """Take the replicas that come first out of a heap of brokers, and return them."""
    passed = []
    while takers and takers[0][1] in replicas:
        passed.append(heappop(takers))
    return passed


def _first_besides(replicas: Collection[int], takers: list[_Taker]) -> _Taker | None:
    """Return the first of a heap of brokers that is not among the replicas."""
    passed = _pass(replicas, takers)
    first = takers[0] if takers else None
    for taker in passed:
        heappush(takers, taker)
    return first
