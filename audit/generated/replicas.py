"""Replicas' lives: they lag and catch up, are moved between brokers, find their directories.

Rule: who reports an ISR leads the partition at that moment; a move is over when the new replica is
in sync, and then the controllers remove the old one.
"""

from functools import partial
from itertools import islice
from typing import Final

from audit.generated.brokers import Brokers
from audit.generated.cast import Cast
from audit.generated.people import BALANCER, WHY
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage
from audit.generated.topics import Topics
from metadata.messages import (
    AlterReassignmentsRequest,
    AssignReplicasRequest,
    Reassignment,
    ReplicaInDirectory,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import DIRECTORY_UNASSIGNED
from metadata.uuids import uuid_text

_WOBBLE_MOST: Final = 17


class Replicas:
    """What happens to replicas of partitions."""

    def __init__(
        self, stage: Stage, cast: Cast, brokers: Brokers, topics: Topics, partitions: int
    ) -> None:
        """`partitions`: how many the cluster has, about."""
        self._stage = stage
        self._cast = cast
        self._brokers = brokers
        self._topics = topics
        self._wobble = min(_WOBBLE_MOST, 3 + partitions // 60)

    def wobble(self) -> None:
        """A follower lags behind a leader for a while: out of some ISRs, and in again."""
        stage, dice = self._stage, self._stage.dice
        image = stage.image
        first = image.topics.partitions[self._topics.some_partition()]
        followers = [replica for replica in first.isr if replica != first.leader]
        if first.leader < 0 or not followers:
            return
        victim, wanted = dice.pick(followers), 1 + dice.below(2 * self._wobble)
        found: list[PlainPartitionKey] = []
        followed = self._cast.followed(first.leader, victim, dice.fraction(), image)
        for key, partition in islice(followed, 8 * wanted):
            if (
                partition.leader == first.leader
                and victim in partition.isr
                and not (partition.adding or partition.removing)
            ):
                found.append(key)
                if len(found) == wanted:
                    break
        self.lag(first.leader, victim, found, 20 * SECOND_MS + dice.around(2 * MINUTE_MS))

    def lag(self, leader: int, victim: int, keys: list[PlainPartitionKey], lasts_ms: int) -> None:
        """A leader drops a follower from ISRs, and takes it back later."""
        partitions = self._stage.image.topics.partitions
        isrs = [(key, partitions[key].isr) for key in keys if partitions.get(key) is not None]
        dropped = [
            (key, tuple(replica for replica in isr if replica != victim))
            for key, isr in isrs
            if victim in isr
        ]
        if dropped and self._brokers.report(leader, dropped):
            self._stage.after(lasts_ms, partial(self._brokers.catch_up, victim, keys))

    def reassign(self) -> None:
        """The balancer moves a replica of some partitions from one broker to another."""
        stage, dice = self._stage, self._stage.dice
        image = stage.image
        free = self._cast.free(image)
        if len(free) < 3:
            return
        source, target, other = dice.some(free, 3)
        first, follower = (source, other) if dice.chance(0.5) else (other, source)
        followed = self._cast.followed(first.id, follower.id, dice.fraction(), image)
        movable = [
            key
            for key, partition in islice(followed, 200)
            if target.id not in partition.replicas
            and not (partition.adding or partition.removing)
            and partition.leader >= 0
            and len(partition.isr) == len(partition.replicas)
        ]
        self.move(dice.some(movable, 1 + dice.below(12)), source.id, target.id)

    def move(self, keys: list[PlainPartitionKey], source: int, target: int) -> None:
        """Replace a replica: added, copied, in sync, the old one removed."""
        stage, dice = self._stage, self._stage.dice
        if not keys:
            return
        reason = dice.pick(WHY["AlterPartitionReassignments"])
        stage.ask(BALANCER, "alter_reassignments", self.asked_moves(keys, source, target), reason)
        partitions = stage.image.topics.partitions
        groups: dict[int, list[PlainPartitionKey]] = {}
        for key in keys:
            groups.setdefault(partitions[key].leader, []).append(key)
        for moved in groups.values():
            after_ms = MINUTE_MS + dice.around(8 * MINUTE_MS)
            stage.after(after_ms, partial(self._arrive, moved, target))

    def asked_moves(
        self, keys: list[PlainPartitionKey], source: int, target: int
    ) -> AlterReassignmentsRequest:
        """Return the request that replaces one broker by another."""
        topics = self._stage.image.topics
        return AlterReassignmentsRequest(
            tuple(
                Reassignment(
                    topics.by_id[key[0]].name,
                    key[1],
                    tuple(
                        target if replica == source else replica
                        for replica in topics.partitions[key].replicas
                    ),
                )
                for key in keys
            )
        )

    def _arrive(self, keys: list[PlainPartitionKey], target: int) -> None:
        """The new replicas are in sync; later, if their brokers are away."""
        stage = self._stage
        self._brokers.catch_up(target, keys)
        partitions = stage.image.topics.partitions
        waiting = []
        for key in keys:
            partition = partitions.get(key)
            if partition is None:
                continue
            if partition.adding:
                waiting.append(key)
            else:
                first = partition.replicas[0]
                for follower in partition.replicas[1:]:
                    if target in (first, follower):
                        self._cast.follows(first, follower, key)
        if waiting:
            stage.after(2 * MINUTE_MS, lambda: self._arrive(waiting, target))

    def assign_directories(self) -> None:
        """A broker with many disks says where new replicas lie (KIP-858)."""
        stage, dice = self._stage, self._stage.dice
        image = stage.image
        several = [each for each in self._cast.free(image) if len(each.log_dirs) > 1]
        if not several:
            return
        broker = dice.pick(several)
        said: list[ReplicaInDirectory] = []
        for _ in range(60):
            key = self._topics.some_partition()
            partition = image.topics.partitions[key]
            if broker.id not in partition.replicas:
                continue
            place = partition.replicas.index(broker.id)
            if partition.directories[place] != DIRECTORY_UNASSIGNED:
                continue
            directory = uuid_text(dice.pick(broker.log_dirs))
            one = ReplicaInDirectory(uuid_text(key[0]), key[1], directory)
            if not any((one.topic_id, one.partition) == (a.topic_id, a.partition) for a in said):
                said.append(one)
        if said:
            epoch = image.cluster.brokers[broker.id].broker_epoch
            stage.rehearsal.assign_directories(
                self._brokers.calls(broker).caller,
                broker.id,
                AssignReplicasRequest(
                    cluster_id=stage.cluster_id, broker_epoch=epoch, replicas=tuple(said)
                ),
            )
            stage.collect()
