"""Who and what is in the made-up cluster, as far as its script must know.

Rule: the state of brokers and partitions is the image's. Here is only what the image doesn't have:
which process runs, which episode has a broker, which topics pass, and lists from which dice pick.
Nothing here iterates a set, so that the order of everything follows from the dice alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from audit.generated.people import Actor, broker_actor
from metadata.image import MetadataImage, Partition
from metadata.messages import AclEntry, QuotaEntityPart
from metadata.partition_key import PlainPartitionKey

_SMALL: Final = (1, 1, 3, 3, 6, 6, 12)
_LARGE: Final = (3, 6, 6, 12, 12, 24, 48)
_MANY: Final = 5_000
"""Partitions of a cluster whose topics are large."""
_WOBBLE_MOST: Final = 17


class BrokerProcess:
    """A broker's machine, and the process on it."""

    def __init__(self, broker_id: int, rack: int, log_dirs: tuple[bytes, ...]) -> None:
        self.id = broker_id
        self.rack = rack
        self.log_dirs = log_dirs
        self.stopped_at = -1
        """The epoch of the last process, if it stopped in order."""
        self.silent = False
        """Nobody hears from it."""
        self.busy = False
        """An episode has it: no other begins with it."""

    def actor(self, on_behalf_of: str = "") -> Actor:
        """As the controllers see it."""
        return broker_actor(self.id, self.rack, on_behalf_of)

    def is_active(self, image: MetadataImage) -> bool:
        """Return whether it serves."""
        broker = image.cluster.brokers.get(self.id)
        return broker is not None and broker.active


class LiveTopic:
    """A topic; `passing` ones are deleted some day."""

    def __init__(
        self, name: str, topic_id: bytes, count: int, factor: int, *, passing: bool
    ) -> None:
        self.name = name
        self.id = topic_id
        self.count = count
        self.factor = factor
        self.passing = passing
        self.place = 0


class Cast:
    """Brokers by id, topics in an order that only dice decide, and what people have set."""

    def __init__(self, partitions: int, topics: int | None) -> None:
        """`partitions`: how many the cluster has, about.

        `topics`: how many stay; None: as many as have these partitions.
        """
        self.brokers: dict[int, BrokerProcess] = {}
        self.software = 25
        """The highest metadata.version that brokers support, as deployed."""
        self.deployments = 0
        self.topics: list[LiveTopic] = []
        self.passing: list[LiveTopic] = []
        self.counted_topics = topics
        self.sizes: Sequence[int] = _SMALL if partitions < _MANY or topics is not None else _LARGE
        """From which the partitions of a topic are drawn."""
        self.target = partitions
        self.named = 0
        """Topics that have got a name."""
        self.partitions = 0
        """How many there are."""
        self.wobble = min(_WOBBLE_MOST, 3 + partitions // 60)
        self.acls: list[AclEntry] = []
        self.credentials: list[tuple[str, str]] = []
        self.tokens: dict[str, bytes] = {}
        self.quotas: list[tuple[tuple[QuotaEntityPart, ...], str]] = []
        self.sessions: dict[str, str] = {}
        """The session of each client that lives."""
        self.key_changes = 0
        self._followed: dict[tuple[int, int], list[PlainPartitionKey]] = {}

    def active(self, image: MetadataImage) -> list[BrokerProcess]:
        """Return the brokers that serve."""
        return [broker for broker in self.brokers.values() if broker.is_active(image)]

    def free(self, image: MetadataImage) -> list[BrokerProcess]:
        """Return the brokers that serve, and that no episode has."""
        return [broker for broker in self.active(image) if not broker.busy]

    def add(self, topic: LiveTopic, image: MetadataImage) -> None:
        """A topic was created."""
        topic.place = len(self.topics)
        self.topics.append(topic)
        if topic.passing:
            self.passing.append(topic)
        self.grown(topic, 0, topic.count, image)

    def grown(self, topic: LiveTopic, first: int, count: int, image: MetadataImage) -> None:
        """A topic has partitions from `first` on that are new."""
        topic.count = count
        self.partitions += count - first
        for number in range(first, count):
            key = topic.id, number
            replicas = image.topics.partitions[key].replicas
            for follower in replicas[1:]:
                self.follows(replicas[0], follower, key)

    def remove(self, topic: LiveTopic) -> None:
        """A topic was deleted."""
        self.partitions -= topic.count
        if topic.passing:
            self.passing.remove(topic)
        last = self.topics.pop()
        if last is not topic:
            self.topics[topic.place] = last
            last.place = topic.place

    def follows(self, first: int, follower: int, key: PlainPartitionKey) -> None:
        """A partition whose first replica is on one broker has another on `follower`."""
        self._followed.setdefault((first, follower), []).append(key)

    def followed(
        self, first: int, follower: int, start: float, image: MetadataImage
    ) -> Iterator[tuple[PlainPartitionKey, Partition]]:
        """Yield the partitions with these replicas, from somewhere on (0 to 1), each once."""
        keys = self._followed.get((first, follower), [])
        partitions = image.topics.partitions
        place = int(start * len(keys))
        for _ in range(len(keys)):
            place = place if place < len(keys) else 0
            key = keys[place]
            partition: Partition | None = partitions.get(key)
            if (
                partition is None
                or partition.replicas[0] != first
                or follower not in partition.replicas
            ):
                # It was moved or deleted.
                keys[place] = keys[-1]
                keys.pop()
                continue
            yield key, partition
            place += 1
