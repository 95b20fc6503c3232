"""What a broker's event changes in the partitions that it touches.

Each function reads an image and returns records in the order of the partitions. The functions yield
now and then, because a broker may hold a hundred thousand replicas.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from controller.managers.directories import directory_of, with_online_directory
from controller.managers.partition_change import Target, change_partition
from controller.managers.sweep import Change, Changes, Sweep
from controller.managers.topic_rules import TopicDefaults, TopicRules
from metadata.image import MetadataImage
from metadata.partition_key import PlainPartitionKey
from metadata.records import NO_LEADER, PartitionChangeRecord


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Return whether a broker is registered, unfenced and not in controlled shutdown."""
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and broker.active


class ActiveBrokers(dict[int, bool]):
    """Whether each broker is active. A broker is looked up when somebody asks for it first."""

    def __init__(self, image: MetadataImage, known: Mapping[int, bool] | None = None) -> None:
        """`known` is what counts for some brokers, whatever the image says."""
        super().__init__(known or {})
        self._image = image

    def __missing__(self, broker_id: int) -> bool:
        active = self[broker_id] = is_active(self._image, broker_id)
        return active


def leave_isr(
    image: MetadataImage, broker_id: int, defaults: TopicDefaults, sweep: Sweep | None = None
) -> Changes:
    """Take a broker out of every ISR, because it is fenced, begins to stop or may stop.

    The partitions that it leads come last. So it still leads some until the last round of a sweep.
    """
    partitions = image.topics.partitions

    def rank(key: PlainPartitionKey) -> int | None:
        partition = partitions[key]
        return int(partition.leader == broker_id) if broker_id in partition.isr else None

    sweep = sweep or Sweep()
    sweep.leaving = broker_id
    change = _changing(image, defaults, _without(broker_id), _others(image, broker_id), sweep)
    return sweep.changes(lambda: image.topics.held_by(broker_id), rank, change)


def leave_isr_and_elr(
    image: MetadataImage, broker_id: int, defaults: TopicDefaults, sweep: Sweep | None = None
) -> Changes:
    """Take a broker out of every ISR and ELR.

    Either it is unregistered, or it came back as another process, which may have lost writes.
    """
    partitions = image.topics.partitions

    def rank(key: PlainPartitionKey) -> int | None:
        partition = partitions[key]
        return 0 if broker_id in partition.isr or broker_id in partition.elr else None

    sweep = sweep or Sweep()
    sweep.leaving = broker_id
    change = _changing(
        image,
        defaults,
        _without(broker_id),
        _others(image, broker_id),
        sweep,
        unclean_shutdown=(broker_id,),
    )
    return sweep.changes(lambda: image.topics.held_by(broker_id), rank, change)


def leave_directories(
    image: MetadataImage,
    broker_id: int,
    directories: Collection[bytes],
    defaults: TopicDefaults,
    sweep: Sweep | None = None,
) -> Changes:
    """Take a broker out of the ISRs of its replicas in some directories, which don't work.

    For these partitions the broker counts as gone (KIP-858).
    """
    partitions = image.topics.partitions

    def rank(key: PlainPartitionKey) -> int | None:
        partition = partitions[key]
        if broker_id not in partition.isr or directory_of(partition, broker_id) not in directories:
            return None
        return int(partition.leader == broker_id)

    sweep = sweep or Sweep()
    change = _changing(image, defaults, _without(broker_id), _others(image, broker_id), sweep)
    sweep.leaving, sweep.directories = broker_id, frozenset(directories)
    return sweep.changes(lambda: image.topics.held_by(broker_id), rank, change)


def elect_leaderless(
    image: MetadataImage,
    back: int | None,
    defaults: TopicDefaults,
    sweep: Sweep | None = None,
    *,
    unfencing: bool = False,
) -> Changes:
    """Elect leaders for partitions that have none. No ISR grows.

    `back`: only for those with a replica on this broker; None: for all. `unfencing`: the broker is
    unfenced together with these changes, so it can lead.
    """
    topics = image.topics
    active = ActiveBrokers(image, {back: True} if unfencing and back is not None else {})
    can_lead = active.__getitem__

    def keys() -> Iterator[PlainPartitionKey]:
        # Thousands of brokers may come back while a hundred thousand partitions have no leader. So
        # the smaller set is looked through, and none of them looks at the partitions of all others.
        if back is not None and topics.replicas_on(back) < len(topics.leaderless):
            return topics.held_by(back)
        return iter(topics.leaderless)

    def rank(key: PlainPartitionKey) -> int | None:
        partition = topics.partitions[key]
        if partition.leader != NO_LEADER or (back is not None and back not in partition.replicas):
            return None
        return 0 if any(map(can_lead, partition.replicas)) else None

    sweep = sweep or Sweep()
    change = _changing(image, defaults, lambda isr: isr, can_lead, sweep)
    return sweep.changes(keys, rank, change)


def _without(broker_id: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda isr: tuple(replica for replica in isr if replica != broker_id)


def _others(image: MetadataImage, broker_id: int) -> Callable[[int], bool]:
    return ActiveBrokers(image, {broker_id: False}).__getitem__


def _changing(
    image: MetadataImage,
    defaults: TopicDefaults,
    wanted: Callable[[tuple[int, ...]], tuple[int, ...]],
    acceptable: Callable[[int], bool],
    sweep: Sweep,
    unclean_shutdown: tuple[int, ...] = (),
) -> Change:
    """Return a function that changes a partition's ISR to `wanted(isr)`, with a fitting leader."""
    rules = TopicRules(image, defaults)
    partitions = image.topics.partitions

    def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
        partition = partitions.get(key)
        if partition is None:
            return None  # The partition was deleted since the sweep began.

        online = with_online_directory(image, partition, acceptable)

        def stays(replica: int) -> bool:
            if not online(replica):
                return False
            return replica not in partition.replicas or not sweep.leaves_elsewhere(
                replica, directory_of(partition, replica)
            )

        return change_partition(
            *key,
            partition,
            Target(isr=wanted(partition.isr)),
            acceptable=stays,
            rules=rules.of(key[0], partition),
            unclean_shutdown=unclean_shutdown,
        )

    return change
