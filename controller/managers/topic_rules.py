"""What the settings of a topic mean for its partitions: min ISR, unclean elections, ELR.

This is the one place where managers ask for these settings. A partition's effective min ISR is the
configured one, but at most its number of replicas (KIP-966).
"""

from typing import NamedTuple

from controller.config import ControllerConfig
from controller.managers.partition_change import ElectionMode, Rules
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage, Partition
from metadata.records import ConfigResourceType

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


class TopicDefaults(NamedTuple):
    """The controllers' own settings, for topics without a config."""

    min_isr: int = 1
    unclean: bool = False


def defaults_of(config: ControllerConfig) -> TopicDefaults:
    """Return what the controllers' settings say."""
    return TopicDefaults(config.min_insync_replicas, config.unclean_leader_election)


def configured_min_isr(image: MetadataImage, topic_id: bytes, defaults: TopicDefaults) -> int:
    """Return a topic's min.insync.replicas, whatever its number of replicas is."""
    text = _config(image, topic_id, MIN_ISR)
    return int(text) if text.isdecimal() else defaults.min_isr


def allows_unclean(image: MetadataImage, topic_id: bytes, defaults: TopicDefaults) -> bool:
    """Return whether a topic may elect a leader that may have lost writes."""
    return (_config(image, topic_id, UNCLEAN) or str(defaults.unclean).lower()) == "true"


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
        self._defaults = defaults
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
        return allows_unclean(self._image, topic_id, self._defaults)

    def _look_up(self, topic_id: bytes) -> tuple[int, bool]:
        return (
            configured_min_isr(self._image, topic_id, self._defaults),
            allows_unclean(self._image, topic_id, self._defaults),
        )


def _config(image: MetadataImage, topic_id: bytes, key: str) -> str:
    name = image.topics.by_id[topic_id].name
    return image.configs.of(ConfigResourceType.TOPIC, name).get(key, "")
