"""What exists in the made-up cluster: a plain model, quick to change, without the image's code.

Rule: whoever changes the model gets the record that says so, and only so is a record made; a
leader lies in its ISR, an ISR in its replicas. Nothing here iterates a set, so that the order of
everything follows from the dice alone.
"""

from collections.abc import Callable

from metadata.records import (
    DIRECTORY_UNASSIGNED,
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.uuids import uuid_text

MIN_ISR = "min.insync.replicas"


class Broker:
    """A broker process, registered or not."""

    def __init__(self, broker_id: int, rack: int, log_dirs: tuple[bytes, ...]) -> None:
        self.id = broker_id
        self.rack = rack
        self.log_dirs = log_dirs
        self.incarnation = b""
        self.epoch = -1
        self.registered = False
        self.fenced = True
        self.leaving = False
        self.busy = False
        """An episode has it: no other begins with it."""
        self.cordoned = False
        """It gets no new replicas."""
        self.hosted = Bag()

    @property
    def active(self) -> bool:
        return self.registered and not self.fenced and not self.leaving

    @property
    def directory(self) -> bytes:
        """Where a new replica goes: known if there is only one place."""
        return self.log_dirs[0] if len(self.log_dirs) == 1 else DIRECTORY_UNASSIGNED


class Topic:
    """A topic; `passing` ones are deleted some day."""

    def __init__(self, name: str, topic_id: bytes, *, passing: bool = False) -> None:
        self.name = name
        self.id = topic_id
        self.passing = passing
        self.alive = True
        self.partitions: list[Partition] = []
        self.configs: dict[str, str] = {}


class Partition:
    """A partition; lists are tuples of broker ids."""

    __slots__ = (
        "adding",
        "directories",
        "isr",
        "leader",
        "number",
        "removing",
        "replicas",
        "topic",
    )

    def __init__(
        self, topic: Topic, number: int, replicas: tuple[int, ...], directories: tuple[bytes, ...]
    ) -> None:
        self.topic = topic
        self.number = number
        self.replicas = replicas
        self.directories = directories
        self.isr = replicas
        self.leader = replicas[0]
        self.adding: tuple[int, ...] = ()
        self.removing: tuple[int, ...] = ()

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def key(self) -> str:
        """As the audit's table of availability names it."""
        return f"{self.topic.name}-{self.number}@{uuid_text(self.topic.id)}"

    def record(self) -> PartitionRecord:
        """Return the record that creates it."""
        return PartitionRecord(
            self.number,
            self.topic.id,
            self.replicas,
            self.isr,
            (),
            (),
            self.leader,
            0,
            0,
            LeaderRecoveryState.RECOVERED,
            self.directories,
        )


class Bag:
    """Partitions in an order that removals disturb, but dice and lists alone decide."""

    def __init__(self) -> None:
        self.items: list[Partition] = []
        self._places: dict[Partition, int] = {}

    def __len__(self) -> int:
        return len(self.items)

    def add(self, item: Partition) -> None:
        if item not in self._places:
            self._places[item] = len(self.items)
            self.items.append(item)

    def remove(self, item: Partition) -> None:
        place = self._places.pop(item, None)
        if place is None:
            return
        last = self.items.pop()
        if last is not item:
            self.items[place] = last
            self._places[last] = place

    def in_order(self) -> list[Partition]:
        """Return them as an image has them: by topic id, then by number."""
        return sorted(self.items, key=lambda p: (p.topic.id, p.number))


LeaderLost = Callable[[Partition, int, int], None]


class Cluster:
    """Brokers and topics, and each change of them as a record."""

    def __init__(self, on_leader: LeaderLost) -> None:
        """`on_leader(partition, before, after)` hears of each leader lost or found again."""
        self._on_leader = on_leader
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.partitions = Bag()
        self.passing: list[Topic] = []

    def active(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if broker.active]

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    # Topics.

    def planned(
        self, topic: Topic, first: int, count: int, factor: int, start: int
    ) -> list[Record]:
        """Plan more partitions of a topic, racks in turn; `adopt` makes them real."""
        active = [broker for broker in self.active() if not broker.cordoned]
        factor = min(factor, len(active))
        records: list[Record] = []
        for number in range(first, first + count):
            chosen = [active[(start + number + i) % len(active)] for i in range(factor)]
            partition = Partition(
                topic,
                number,
                tuple(broker.id for broker in chosen),
                tuple(broker.directory for broker in chosen),
            )
            topic.partitions.append(partition)
            records.append(partition.record())
        return records

    def adopt(self, topic: Topic, first: int = 0) -> None:
        """A planned topic, or its partitions from `first` on, exist."""
        if first == 0:
            self.topics[topic.name] = topic
            if topic.passing:
                self.passing.append(topic)
        for partition in topic.partitions[first:]:
            self.partitions.add(partition)
            for replica in partition.replicas:
                self.brokers[replica].hosted.add(partition)

    def remove(self, topic: Topic) -> RemoveTopicRecord:
        """Delete a topic."""
        topic.alive = False
        del self.topics[topic.name]
        if topic.passing:
            self.passing.remove(topic)
        for partition in topic.partitions:
            self.partitions.remove(partition)
            for replica in partition.replicas:
                self.brokers[replica].hosted.remove(partition)
            if partition.leader == NO_LEADER:
                self._on_leader(partition, NO_LEADER, 0)
        return RemoveTopicRecord(topic.id)

    @staticmethod
    def created(topic: Topic) -> TopicRecord:
        return TopicRecord(topic.name, topic.id)

    # Partitions.

    def set_isr(self, partition: Partition, isr: tuple[int, ...]) -> PartitionChangeRecord:
        """The leader reports another ISR."""
        assert partition.leader in isr
        partition.isr = isr
        return PartitionChangeRecord(partition.number, partition.topic.id, isr)

    def lead(
        self,
        partition: Partition,
        leader: int,
        isr: tuple[int, ...] | None = None,
        recovery: int = LEADER_RECOVERY_STATE_UNTOUCHED,
    ) -> PartitionChangeRecord:
        """Another leader, and perhaps another ISR."""
        before = partition.leader
        if isr is not None:
            partition.isr = isr
        assert leader == NO_LEADER or leader in partition.isr
        change = NO_LEADER_CHANGE
        if leader != before:
            partition.leader = change = leader
            if NO_LEADER in (before, leader):
                self._on_leader(partition, before, leader)
        return PartitionChangeRecord(
            partition.number, partition.topic.id, isr, change, leader_recovery_state=recovery
        )

    def leave(self, broker: Broker) -> list[Record]:
        """A broker that is not active any more leaves every ISR; the last member stays in it."""
        gone, records = broker.id, list[Record]()
        for partition in broker.hosted.in_order():
            if gone not in partition.isr:
                continue
            isr = tuple(replica for replica in partition.isr if replica != gone)
            if partition.leader != gone:
                if isr and partition.leader != NO_LEADER:
                    records.append(self.set_isr(partition, isr))
                continue
            if not isr:
                records.append(self.lead(partition, NO_LEADER))
                continue
            records.append(self.lead(partition, _first(partition, isr), isr))
        return records

    def elect_leaderless(self, broker: Broker) -> list[Record]:
        """A broker is back: what waits for it gets a leader."""
        return [
            self.lead(partition, broker.id)
            for partition in broker.hosted.in_order()
            if partition.leader == NO_LEADER and broker.id in partition.isr
        ]

    def move(
        self,
        partition: Partition,
        replicas: tuple[int, ...],
        adding: tuple[int, ...],
        removing: tuple[int, ...],
    ) -> PartitionChangeRecord:
        """Begin a reassignment: `replicas` holds the old ones and the new."""
        directories = self._directories(partition, replicas)
        for replica in adding:
            self.brokers[replica].hosted.add(partition)
        partition.replicas, partition.directories = replicas, directories
        partition.adding, partition.removing = adding, removing
        return PartitionChangeRecord(
            partition.number,
            partition.topic.id,
            replicas=replicas,
            removing_replicas=removing,
            adding_replicas=adding,
            directories=directories,
        )

    def settle(self, partition: Partition, isr: tuple[int, ...]) -> PartitionChangeRecord:
        """End a reassignment: the new replicas are in the ISR, the old ones go."""
        removing = partition.removing
        replicas = tuple(replica for replica in partition.replicas if replica not in removing)
        directories = self._directories(partition, replicas)
        isr = tuple(replica for replica in isr if replica not in removing)
        leader = partition.leader
        if leader not in isr:
            leader = _first(partition, isr)
        change = self.lead(partition, leader, isr)
        for replica in removing:
            self.brokers[replica].hosted.remove(partition)
        partition.replicas, partition.directories = replicas, directories
        partition.adding = partition.removing = ()
        return PartitionChangeRecord(
            partition.number,
            partition.topic.id,
            isr,
            change.leader,
            replicas,
            (),
            (),
            directories=directories,
        )

    def _directories(self, partition: Partition, replicas: tuple[int, ...]) -> tuple[bytes, ...]:
        known = dict(zip(partition.replicas, partition.directories, strict=True))
        return tuple(known.get(replica, self.brokers[replica].directory) for replica in replicas)


def _first(partition: Partition, isr: tuple[int, ...]) -> int:
    """Return the first replica in an ISR that is not empty.

    It can lead: of a partition that has a leader, all of the ISR are active.
    """
    return next(replica for replica in partition.replicas if replica in isr)
