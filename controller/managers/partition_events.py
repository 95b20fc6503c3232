"""What a broker's event changes in the partitions that it touches.

Each function reads an image and returns records in the order of the partitions. The functions yield
now and then, because a broker may hold a hundred thousand replicas.
"""

from collections.abc import Callable

from controller.managers.elections import ElectionMode, Rules, change_partition
from controller.managers.sweep import Change, Changes, Sweep
from metadata.image import MetadataImage
from metadata.partition_key import PlainPartitionKey
from metadata.records import ConfigResourceType, PartitionChangeRecord

ELR_FEATURE = "eligible.leader.replicas.version"


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Return whether a broker is registered, unfenced and not in controlled shutdown."""
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and broker.active


def leave_isr(image: MetadataImage, broker_id: int, sweep: Sweep | None = None) -> Changes:
    """Take a broker out of every ISR, because it is fenced, begins to stop or may stop.

    The partitions that it leads come last. So it still leads some until the last round of a sweep.
    """
    partitions = image.topics.partitions

    def rank(key: PlainPartitionKey) -> int | None:
        partition = partitions[key]
        return int(partition.leader == broker_id) if broker_id in partition.isr else None

    change = _changing(image, _without(broker_id), _others(image, broker_id))
    return (sweep or Sweep()).changes(lambda: image.topics.held_by(broker_id), rank, change)


def leave_isr_and_elr(image: MetadataImage, broker_id: int, sweep: Sweep | None = None) -> Changes:
    """Take a broker out of every ISR and ELR.

    Either it is unregistered, or it came back as another process, which may have lost writes.
    """
    partitions = image.topics.partitions

    def rank(key: PlainPartitionKey) -> int | None:
        partition = partitions[key]
        return 0 if broker_id in partition.isr or broker_id in partition.elr else None

    change = _changing(
        image, _without(broker_id), _others(image, broker_id), unclean_shutdown=(broker_id,)
    )
    return (sweep or Sweep()).changes(lambda: image.topics.held_by(broker_id), rank, change)


def elect_leaderless(
    image: MetadataImage, unfenced: int | None, sweep: Sweep | None = None
) -> Changes:
    """Elect leaders where there are none, because `unfenced` is being unfenced. No ISR grows.

    `unfenced` is None if no broker is being unfenced.
    """
    partitions = image.topics.partitions
    active = {b.broker_id for b in image.cluster.brokers.values() if b.active}
    if unfenced is not None:
        active.add(unfenced)

    def rank(key: PlainPartitionKey) -> int | None:
        return None if active.isdisjoint(partitions[key].replicas) else 0

    change = _changing(image, lambda isr: isr, active.__contains__)
    leaderless = image.topics.leaderless
    return (sweep or Sweep()).changes(
        lambda: (key for key, _ in leaderless.unordered_items()), rank, change
    )


def _without(broker_id: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    return lambda isr: tuple(replica for replica in isr if replica != broker_id)


def _others(image: MetadataImage, broker_id: int) -> Callable[[int], bool]:
    active = {b.broker_id for b in image.cluster.brokers.values() if b.active}
    active.discard(broker_id)
    return active.__contains__


def _changing(
    image: MetadataImage,
    wanted: Callable[[tuple[int, ...]], tuple[int, ...]],
    acceptable: Callable[[int], bool],
    unclean_shutdown: tuple[int, ...] = (),
) -> Change:
    """Return a function that changes a partition's ISR to `wanted(isr)`, with a fitting leader."""
    rules_of = _RulesOfTopics(image)
    partitions = image.topics.partitions

    def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
        partition = partitions.get(key)
        if partition is None:
            return None  # The partition was deleted since the sweep began.
        return change_partition(
            *key,
            partition,
            target_isr=wanted(partition.isr),
            acceptable=acceptable,
            rules=rules_of.topic(key[0]),
            unclean_shutdown=unclean_shutdown,
        )

    return change


class _RulesOfTopics:
    """The election rules of each topic, looked up once per topic."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._elr = image.features.levels.get(ELR_FEATURE, 0) > 0
        self._known: dict[bytes, Rules] = {}

    def topic(self, topic_id: bytes) -> Rules:
        rules = self._known.get(topic_id)
        if rules is None:
            rules = self._known[topic_id] = self._look_up(topic_id)
        return rules

    def _look_up(self, topic_id: bytes) -> Rules:
        name = self._image.topics.by_id[topic_id].name
        configs = self._image.configs.of(ConfigResourceType.TOPIC, name)
        unclean = configs.get("unclean.leader.election.enable", "false") == "true"
        min_isr = configs.get("min.insync.replicas", "1")
        return Rules(
            elr=self._elr,
            min_isr=int(min_isr) if min_isr.isdecimal() else 1,
            mode=ElectionMode.UNCLEAN if unclean else ElectionMode.ONLINE,
        )
