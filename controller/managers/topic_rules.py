"""What the settings of a topic mean for its partitions: min ISR, unclean elections, ELR.

This is the one place where managers ask for these settings. What counts is the effective config:
the topic's own, else that of the brokers, else the controllers' own (`metadata.configs.effective`).
A partition's effective min ISR is the
configured one, but at most its number of replicas (KIP-966).
"""

from typing import Final

from controller.config import ControllerConfig
from controller.managers.partition_change import ElectionMode, Rules
from metadata.configs.effective import MIN_ISR, UNCLEAN, Effective, OwnConfigs
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage, Partition
from metadata.records import ConfigResourceType

_TOPIC: Final = ConfigResourceType.TOPIC
_MIN_ISR_DEFAULT: Final = 1

TopicDefaults = OwnConfigs
"""The controllers' own settings, for topics without a config."""


def defaults_of(config: ControllerConfig) -> TopicDefaults:
    """Return the controllers' own settings under Kafka's keys."""
    own = {}
    if config.min_insync_replicas != _MIN_ISR_DEFAULT:
        own[MIN_ISR] = str(config.min_insync_replicas)
    if config.unclean_leader_election:
        own[UNCLEAN] = "true"
    # What only the controller itself reads is shown, too, under Kafka's keys.
    for key, value, default in (
        ("num.partitions", config.default_partitions, 1),
        ("default.replication.factor", config.default_replication_factor, 1),
        ("delete.topic.enable", config.topic_deletion, True),
    ):
        if value != default:
            own[key] = str(value).lower()
    return OwnConfigs({**own, **config.configs}, config.node_id)


def configured_min_isr(effective: Effective, topic: str) -> int:
    """Return a topic's min.insync.replicas, whatever its number of replicas is."""
    text = effective.value(_TOPIC, topic, MIN_ISR) or ""
    # A log of another program may hold a value that isn't a number.
    return int(text) if text.strip().isdecimal() else _MIN_ISR_DEFAULT


def allows_unclean(effective: Effective, topic: str) -> bool:
    """Return whether a topic may elect a leader that may have lost writes."""
    return (effective.value(_TOPIC, topic, UNCLEAN) or "").strip().lower() == "true"


def effective_min_isr(configured: int, partition: Partition) -> int:
    """Return how many replicas in sync a partition needs to take writes."""
    return min(configured, len(partition.replicas))


def elr_enabled(image: MetadataImage) -> bool:
    """Return whether partitions remember eligible leader replicas."""
    return image.features.levels.get(ELR_VERSION, 0) > 0


class TopicRules:
    """The rules of each topic in one image, looked up once for each topic."""

    def __init__(self, image: MetadataImage, defaults: TopicDefaults) -> None:
        self._image = image
        self._effective = Effective(image, defaults)
        self._elr = elr_enabled(image)
        self._known: dict[bytes, tuple[int, bool]] = {}

    def of(self, topic_id: bytes, partition: Partition, mode: ElectionMode | None = None) -> Rules:
        """Return the rules for a change of one partition.

        `mode` None: ONLINE, or UNCLEAN where the topic allows it.
        """
        known = self._known.get(topic_id)
        if known is None:
            known = self._known[topic_id] = self._look_up(topic_id)
        min_isr, unclean = known
        if mode is None:
            mode = ElectionMode.UNCLEAN if unclean else ElectionMode.ONLINE
        return Rules(self._elr, effective_min_isr(min_isr, partition), mode)

    def unclean(self, topic_id: bytes) -> bool:
        """Return whether the topic allows unclean elections."""
        return allows_unclean(self._effective, self._name(topic_id))

    def _look_up(self, topic_id: bytes) -> tuple[int, bool]:
        name = self._name(topic_id)
        return configured_min_isr(self._effective, name), allows_unclean(self._effective, name)

    def _name(self, topic_id: bytes) -> str:
        return self._image.topics.by_id[topic_id].name
