"""What a broker's event means for the partitions that it touches.

Rule: each function reads an image and returns the records in the order of the partitions; none
changes anything. They yield now and then: a broker may hold a hundred thousand replicas.
"""

from collections.abc import Callable, Generator, Iterable

from controller.managers.elections import Mode, Rules, change_partition
from metadata.buckets import PartitionKey
from metadata.image import MetadataImage
from metadata.records import ConfigResourceType, PartitionChangeRecord

ELR_FEATURE = "eligible.leader.replicas.version"
Changes = Generator[None, None, list[PartitionChangeRecord]]
_STEP = 256


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Registered, unfenced and not in controlled shutdown."""
    broker = image.cluster.brokers.get(broker_id)
    return broker is not None and broker.active


def leave_isr(image: MetadataImage, broker_id: int) -> Changes:
    """A broker is fenced, begins to stop or is told to go: it leaves every ISR it is in."""

    def wanted(partition_isr: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(replica for replica in partition_isr if replica != broker_id)

    in_isr = (
        key
        for key in image.topics.replicas_of(broker_id)
        if broker_id in image.topics.partitions[key].isr
    )
    return _changes(image, in_isr, wanted, lambda b: b != broker_id and is_active(image, b))


def leave_isr_and_elr(image: MetadataImage, broker_id: int) -> Changes:
    """A broker is forgotten, or came back as another process that may have lost writes."""

    def wanted(partition_isr: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(replica for replica in partition_isr if replica != broker_id)

    def touched(key: PartitionKey) -> bool:
        partition = image.topics.partitions[key]
        return broker_id in partition.isr or broker_id in partition.elr

    held = filter(touched, image.topics.replicas_of(broker_id))
    return _changes(
        image,
        held,
        wanted,
        lambda b: b != broker_id and is_active(image, b),
        unclean_shutdown=(broker_id,),
    )


def elect_leaderless(image: MetadataImage, unfenced: int) -> Changes:
    """A broker is being unfenced: whatever has no leader may have one now. No ISR grows."""
    leaderless = (key for key in image.topics.leaderless)
    return _changes(
        image, leaderless, lambda isr: isr, lambda b: b == unfenced or is_active(image, b)
    )


def _changes(
    image: MetadataImage,
    keys: Iterable[PartitionKey],
    wanted: Callable[[tuple[int, ...]], tuple[int, ...]],
    acceptable: Callable[[int], bool],
    unclean_shutdown: tuple[int, ...] = (),
) -> Changes:
    changes: list[PartitionChangeRecord] = []
    rules_of = _RulesOfTopics(image)
    known: dict[int, bool] = {}

    def accepted(broker_id: int) -> bool:
        if broker_id not in known:
            known[broker_id] = acceptable(broker_id)
        return known[broker_id]

    for number, key in enumerate(keys, start=1):
        partition = image.topics.partitions[key]
        change = change_partition(
            *key,
            partition,
            target_isr=wanted(partition.isr),
            acceptable=accepted,
            rules=rules_of.topic(key[0]),
            unclean_shutdown=unclean_shutdown,
        )
        if change is not None:
            changes.append(change)
        if number % _STEP == 0:
            yield
    return changes


class _RulesOfTopics:
    """What elections must know of each topic's configs, looked up once a topic."""

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
            mode=Mode.UNCLEAN if unclean else Mode.ONLINE,
        )
