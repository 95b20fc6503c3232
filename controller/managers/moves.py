"""Plans reassignments that empty brokers: each of their replicas goes to another broker.

This is a pure function of an image. The plan keeps the place of the replica in its list, and so the
preferred leader where it can. It takes an active broker that has no replica of the partition and
takes new ones. It prefers a rack that no other replica of the partition is in, then the broker with
the fewest replicas, as the plan so far leaves them, then the smallest id.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from controller.managers.assignments import why_no_new_replica
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
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
        self._racks = {
            broker.broker_id: broker.rack
            for broker in image.cluster.brokers.values()
            if broker.active
            and broker.broker_id not in self._emptied
            and not why_no_new_replica(image, broker.broker_id)
        }
        self._held = {broker_id: image.topics.replicas_on(broker_id) for broker_id in self._racks}
        if not self._racks:
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
                    self._held[chosen] += 1
        return Move(key, before, tuple(after))

    def _stays(self, partition: Partition) -> bool:
        """Return whether one of the brokers would hold the partition for good."""
        return any(b in self._emptied and b not in partition.removing for b in partition.replicas)

    def _chosen(self, replicas: list[int]) -> int | None:
        free = [broker_id for broker_id in self._racks if broker_id not in replicas]
        if not free:
            return None
        taken = {self._racks.get(b) for b in replicas if b not in self._emptied}
        return min(free, key=lambda b: (self._racks[b] in taken, self._held[b], b))
