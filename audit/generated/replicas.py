"""Replicas' lives: they lag and catch up, are moved between brokers, find their directories.

Rule: who reports an ISR leads the partition at that moment; a move is over when the new replica is
in sync and the old one gone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from audit.generated.brokers import Brokers
from audit.generated.model import Partition
from audit.generated.people import BALANCER, WHY
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage
from audit.generated.topics import Topics
from metadata.records import DIRECTORY_UNASSIGNED, PartitionChangeRecord, Record

_WOBBLE_MOST: Final = 17


class Replicas:
    """What happens to replicas of partitions."""

    def __init__(self, stage: Stage, brokers: Brokers, topics: Topics, partitions: int) -> None:
        """`partitions`: how many the cluster has, about."""
        self._stage = stage
        self._brokers = brokers
        self._topics = topics
        self._wobble = min(_WOBBLE_MOST, 3 + partitions // 60)

    def wobble(self) -> None:
        """A follower lags behind a leader for a while: out of some ISRs, and in again."""
        stage, dice = self._stage, self._stage.dice
        first = self._topics.some_partition()
        followers = [replica for replica in first.isr if replica != first.leader]
        if first.leader < 0 or not followers:
            return
        victim = stage.cluster.brokers[dice.pick(followers)]
        hosted = stage.cluster.brokers[first.leader].hosted.items
        start, wanted = dice.below(len(hosted)), 1 + dice.below(2 * self._wobble)
        found: list[Partition] = []
        for step in range(min(len(hosted), 40 * wanted)):
            partition = hosted[(start + step) % len(hosted)]
            if (
                partition.leader == first.leader
                and victim.id in partition.isr
                and not partition.moving
            ):
                found.append(partition)
                if len(found) == wanted:
                    break
        self.lag(first.leader, victim.id, found, 20 * SECOND_MS + dice.around(2 * MINUTE_MS))

    def lag(self, leader: int, victim: int, partitions: list[Partition], lasts_ms: int) -> None:
        """A leader drops a follower from ISRs, and takes it back later."""
        dropped = [
            (partition, tuple(replica for replica in partition.isr if replica != victim))
            for partition in partitions
            if victim in partition.isr
        ]
        if self._brokers.report(leader, dropped) is not None:
            self._stage.after(lasts_ms, partial(self._brokers.catch_up, victim, partitions))

    def reassign(self) -> None:
        """The balancer moves a replica of some partitions from one broker to another."""
        dice = self._stage.dice
        free = self._brokers.free()
        if len(free) < 2:
            return
        source, target = dice.some(free, 2)
        movable = [
            partition
            for partition in source.hosted.items[dice.below(len(source.hosted) + 1) :][:200]
            if target.id not in partition.replicas
            and not partition.moving
            and partition.leader >= 0
            and set(partition.isr) == set(partition.replicas)
        ]
        self.move(dice.some(movable, 1 + dice.below(12)), source.id, target.id)

    def move(self, partitions: Sequence[Partition], source: int, target: int) -> None:
        """Replace a replica: added, copied, in sync, the old one removed."""
        stage, dice = self._stage, self._stage.dice
        if not partitions:
            return
        records = [
            stage.cluster.move(partition, (*partition.replicas, target), (target,), (source,))
            for partition in partitions
        ]
        reason = dice.pick(WHY["AlterPartitionReassignments"])
        stage.answer(BALANCER, "AlterPartitionReassignments", records, reason)
        groups: dict[int, list[Partition]] = {}
        for partition in partitions:
            groups.setdefault(partition.leader, []).append(partition)
        for moved in groups.values():
            stage.after(
                MINUTE_MS + dice.around(8 * MINUTE_MS),
                partial(self._settle, moved, target),
            )

    def _settle(self, partitions: list[Partition], target: int) -> None:
        """The new replicas are in sync; later, if their brokers are away."""
        stage = self._stage
        ready = [
            partition
            for partition in partitions
            if partition.topic.alive and partition.moving and partition.leader >= 0
        ]
        if not stage.cluster.is_active(target):
            stage.after(2 * MINUTE_MS, lambda: self._settle(ready, target))
            return
        by_leader: dict[int, list[Record]] = {}
        for partition in ready:
            isr = partition.isr if target in partition.isr else (*partition.isr, target)
            reporter = partition.leader
            by_leader.setdefault(reporter, []).append(stage.cluster.settle(partition, isr))
        for leader, records in by_leader.items():
            caller = self._brokers.calls(stage.cluster.brokers[leader])
            stage.write(caller, "AlterPartition", records)
        waiting = [p for p in partitions if p.topic.alive and p.moving]
        if waiting:
            stage.after(2 * MINUTE_MS, lambda: self._settle(waiting, target))

    def assign_directories(self) -> None:
        """A broker with many disks says where new replicas lie (KIP-858)."""
        stage, dice = self._stage, self._stage.dice
        several = [broker for broker in self._brokers.free() if len(broker.log_dirs) > 1]
        if not several:
            return
        broker = dice.pick(several)
        start = dice.below(len(broker.hosted) + 1)
        records: list[Record] = []
        for partition in broker.hosted.items[start : start + 60]:
            place = partition.replicas.index(broker.id)
            if partition.directories[place] == DIRECTORY_UNASSIGNED:
                directories = list(partition.directories)
                directories[place] = dice.pick(broker.log_dirs)
                partition.directories = tuple(directories)
                records.append(
                    PartitionChangeRecord(
                        partition.number, partition.topic.id, directories=partition.directories
                    )
                )
        if records:
            stage.write(self._brokers.calls(broker), "AssignReplicasToDirs", records)
