"""Updates the maps that are derived from the partitions: who holds, leads and lacks what.

Rule: the maps are updated when a delta is applied, once for each partition, however often it
changed. Each step compares a partition with its state in the image before.
"""

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence

from metadata.buckets import STEP, BucketMap
from metadata.freeing import emptied
from metadata.image.partition import Partition
from metadata.image.partition_set import PartitionSet, pack
from metadata.image.topics import NO_PARTITIONS, NOTHING, Lacks
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER


class DerivedChanges:
    """The changes to the derived maps, from the partitions that changed."""

    def __init__(self) -> None:
        self._held = defaultdict[int, dict[bytes, bool | None]](dict)
        """By broker: True for a partition of which it got a replica; None: it lost one. Here and in
        the two sets below, the keys are packed."""
        self._leads_more = defaultdict[int, int](int)
        """By broker: how many partitions more it leads; negative: fewer."""
        self.leaderless: dict[bytes, bool | None] = {}
        self.unpreferred: dict[bytes, bool | None] = {}
        self._leader_lacks = defaultdict[bytes, int](int)
        self._in_sync_lacks = defaultdict[bytes, int](int)
        self._moving = defaultdict[bytes, int](int)
        """By topic: how many partitions more lack something or are being reassigned; negative:
        fewer."""

    def find(
        self,
        changed: Mapping[PlainPartitionKey, Partition | None],
        were: Sequence[Partition | None],
    ) -> Generator[None, None, None]:
        """Compare each partition with its state before, which has the same place in `were`."""
        held = self._held
        pairs = zip(changed.items(), were, strict=True)
        for number, ((key, after), before) in enumerate(pairs, 1):
            if number % STEP == 0:
                yield
            old = None if before is None else before.leader
            new = None if after is None else after.leader
            if old != new:
                self._move_leader(key, old, new)
            other = after is not None and new not in after.replicas[:1]
            if other != (before is not None and old not in before.replicas[:1]):
                self.unpreferred[pack(key)] = True if other else None
            more = (after is not None and len(after.isr) < len(after.replicas)) - (
                before is not None and len(before.isr) < len(before.replicas)
            )
            if more:
                self._in_sync_lacks[key[0]] += more
            more = bool(after is not None and (after.adding or after.removing)) - bool(
                before is not None and (before.adding or before.removing)
            )
            if more:
                self._moving[key[0]] += more
            if before is None:
                packed = pack(key)
                for broker_id in () if after is None else after.replicas:
                    held[broker_id][packed] = True
            elif after is None or after.replicas is not before.replicas:
                self._move_replicas(key, before.replicas, () if after is None else after.replicas)

    def emptied(self) -> Generator[None, None, None]:
        """Free everything in steps."""
        yield from emptied(*self._held.values(), self.leaderless, self.unpreferred)

    def _move_leader(self, key: PlainPartitionKey, before: int | None, after: int | None) -> None:
        """Note a change of leader. -1: the partition has no leader; None: there is no partition."""
        if before == NO_LEADER:
            self.leaderless[pack(key)] = None
            self._leader_lacks[key[0]] -= 1
        elif before is not None:
            self._leads_more[before] -= 1
        if after == NO_LEADER:
            self.leaderless[pack(key)] = True
            self._leader_lacks[key[0]] += 1
        elif after is not None:
            self._leads_more[after] += 1

    def _move_replicas(
        self, key: PlainPartitionKey, before: tuple[int, ...], after: tuple[int, ...]
    ) -> None:
        packed = pack(key)
        for broker_id in before:
            if broker_id not in after:
                self._held[broker_id][packed] = None
        for broker_id in after:
            if broker_id not in before:
                self._held[broker_id][packed] = True

    def apply_replicas(
        self, by_broker: BucketMap[int, PartitionSet]
    ) -> Generator[None, None, BucketMap[int, PartitionSet]]:
        """Return the next map of the partitions that have a replica on each broker."""
        changed: dict[int, PartitionSet | None] = {}
        written = 0
        for broker_id, changes in self._held.items():
            held = yield from by_broker.get(broker_id, NO_PARTITIONS).changing(changes)
            changed[broker_id] = held if len(held) else None
            written += len(changes)
            if written >= STEP:
                written = 0
                yield
        return by_broker.with_changes(changed)

    def apply_lacks(
        self, lacks: BucketMap[bytes, Lacks]
    ) -> Generator[None, None, BucketMap[bytes, Lacks]]:
        """Return the next map of the topics that lack something."""
        changes: dict[bytes, Lacks | None] = {}
        for topic_id in {**self._leader_lacks, **self._in_sync_lacks, **self._moving}:
            leader, in_sync, moving = lacks.get(topic_id, NOTHING)
            now = Lacks(
                leader + self._leader_lacks.get(topic_id, 0),
                in_sync + self._in_sync_lacks.get(topic_id, 0),
                moving + self._moving.get(topic_id, 0),
            )
            changes[topic_id] = None if now == NOTHING else now
        return (yield from lacks.changing(changes))

    def apply_leaders(self, counts: BucketMap[int, int]) -> BucketMap[int, int]:
        """Return the next map of how many partitions each broker leads."""
        more = {broker_id: count for broker_id, count in self._leads_more.items() if count}
        return counts.with_changes(
            {b: counts.get(b, 0) + count or None for b, count in more.items()}
        )
