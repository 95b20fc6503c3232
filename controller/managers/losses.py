"""Says what losing brokers would do: the changes of partitions that it would write.

Nothing is written. The lost brokers are fenced one after another, by id, as it happens when their
sessions end. Partitions do not depend on each other, so each of them is computed by itself, and a
caller may compute them one by one.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from controller.managers.directories import with_online_directory
from controller.managers.partition_change import Target, change_partition
from controller.managers.partition_events import ActiveBrokers
from controller.managers.topic_rules import TopicDefaults, TopicRules
from metadata.image import MetadataImage, Partition
from metadata.partition_key import PlainPartitionKey
from metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    FencingChange,
    PartitionChangeRecord,
)


class Affected(NamedTuple):
    """What becomes of one partition of the lost brokers."""

    key: PlainPartitionKey
    before: Partition
    after: Partition
    records: tuple[PartitionChangeRecord, ...]
    leaderless: bool
    """It has no leader then."""
    under_min_isr: bool
    """It has fewer replicas in sync then than it needs to take writes."""


class Losses:
    """What losing some brokers does to one image."""

    def __init__(
        self, image: MetadataImage, lost: Collection[int], defaults: TopicDefaults
    ) -> None:
        self._image = image
        self._lost = frozenset(lost)
        self._rules = TopicRules(image, defaults)
        self._active = ActiveBrokers(image)
        brokers = image.cluster.brokers
        self._fenced = tuple(b for b in sorted(self._lost) if not brokers[b].fenced)
        """The brokers that are fenced, one after another."""

    def of_brokers(self) -> tuple[BrokerRegistrationChangeRecord, ...]:
        """Return the records that fence the brokers."""
        brokers = self._image.cluster.brokers
        return tuple(
            BrokerRegistrationChangeRecord(
                broker_id, brokers[broker_id].broker_epoch, fenced=FencingChange.FENCE
            )
            for broker_id in self._fenced
        )

    def held_keys(self) -> Iterator[PlainPartitionKey | None]:
        """Yield the partitions that have a replica on a lost broker, each once, in no order.

        None stands for one that came before, so that a caller can count its steps.
        """
        partitions = self._image.topics.partitions
        for broker_id in sorted(self._lost):
            for key in self._image.topics.held_by(broker_id):
                first = min(b for b in partitions[key].replicas if b in self._lost)
                yield key if first == broker_id else None

    def affected(self, key: PlainPartitionKey) -> Affected:
        """Return what becomes of one partition."""
        before = after = self._image.topics.partitions[key]
        records: list[PartitionChangeRecord] = []
        for broker_id in self._fenced:
            if broker_id not in after.isr:
                continue
            record = change_partition(
                *key,
                after,
                Target(isr=tuple(replica for replica in after.isr if replica != broker_id)),
                acceptable=with_online_directory(self._image, after, self._active_after(broker_id)),
                rules=self._rules.of(key[0], after),
            )
            if record is not None:
                records.append(record)
                after = changed(after, record)
        rules = self._rules.of(key[0], after)
        in_sync = [replica for replica in after.isr if replica not in self._lost]
        return Affected(
            key,
            before,
            after,
            tuple(records),
            leaderless=after.leader == NO_LEADER,
            under_min_isr=len(in_sync) < rules.min_isr,
        )

    def _active_after(self, broker_id: int) -> Callable[[int], bool]:
        """Return who is active once a lost broker is fenced: those before it are fenced too."""
        active, lost = self._active, self._lost
        return lambda other: active[other] and not (other in lost and other <= broker_id)


def changed(partition: Partition, record: PartitionChangeRecord) -> Partition:
    """Return a partition after a change, as replay makes it."""
    fields = {
        "isr": record.isr,
        "replicas": record.replicas,
        "removing": record.removing_replicas,
        "adding": record.adding_replicas,
        "elr": record.eligible_leader_replicas,
        "last_known_elr": record.last_known_elr,
        "directories": record.directories,
    }
    now = msgspec.structs.replace(
        partition, **{name: value for name, value in fields.items() if value is not None}
    )
    named = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return msgspec.structs.replace(
        now,
        leader=record.leader if named else partition.leader,
        leader_epoch=partition.leader_epoch + named,
        partition_epoch=partition.partition_epoch + 1,
        leader_recovery_state=partition.leader_recovery_state if recovery < 0 else recovery,
    )
