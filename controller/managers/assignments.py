"""Says where the replicas of new partitions are: as the request lists them, or placed here.

These are pure functions of an image and of the randomness that they are given. Topics and added
partitions share them, so both follow the same rules.
"""

from collections.abc import Iterator
from itertools import chain

from controller.managers.partition_events import is_active
from controller.managers.placement import PlacementError, place
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.brokers import is_cordoned
from metadata.records import DIRECTORY_UNASSIGNED, PartitionRecord
from runtime.randomness import Random


def why_no_new_replica(image: MetadataImage, broker_id: int) -> str:
    """Return why nobody may put a new replica on a registered broker; empty if it is fine."""
    if is_cordoned(image.cluster.brokers[broker_id]):
        return (
            f"broker {broker_id} takes no new replicas: all of its log directories are cordoned "
            "(cordoned.log.dirs)"
        )
    return ""


def placed(
    image: MetadataImage, replication_factor: int, random: Random, subject: str
) -> Iterator[tuple[int, ...]]:
    """Yield the replicas of one new partition after another, without end.

    `subject` begins the message of the error. Raises LogbergError INVALID_REPLICATION_FACTOR, at
    once and not at the first partition.
    """
    rows = place(image.cluster.racks, replication_factor, random)
    try:
        first = next(rows)
    except PlacementError as error:
        raise LogbergError(ErrorCode.INVALID_REPLICATION_FACTOR, f"{subject}: {error}") from None
    return chain((first,), rows)


def why_not_assigned(
    image: MetadataImage, replicas: tuple[int, ...], replication_factor: int
) -> str:
    """Return what is wrong with the replicas that a request names for a partition; empty if fine.

    The text goes on a sentence that begins with the partition: "partition 3 …".
    """
    if not replicas:
        return "has no replicas"
    if len(set(replicas)) < len(replicas):
        return "names a broker twice"
    for broker_id in replicas:
        broker = image.cluster.brokers.get(broker_id)
        if broker is None:
            return f"names broker {broker_id}, which is not registered"
        if is_cordoned(broker):
            return f"names broker {broker_id}, whose log directories are all cordoned"
    if len(replicas) != replication_factor:
        return (
            f"has {len(replicas)} replicas instead of {replication_factor}: all partitions of a "
            "topic have equally many replicas"
        )
    if not any(is_active(image, broker_id) for broker_id in replicas):
        return "has no replica that is online"
    return ""


class PartitionRecords:
    """Makes the records of new partitions on one image. It looks at each list of replicas once."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._known: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[bytes, ...]]] = {}
        """The ISR and the directories, by replicas."""

    def of(self, topic_id: bytes, partition_id: int, replicas: tuple[int, ...]) -> PartitionRecord:
        """Return the record of a partition. At least one of its replicas must be active."""
        known = self._known.get(replicas)
        if known is None:
            image = self._image
            known = self._known[replicas] = (
                tuple(broker_id for broker_id in replicas if is_active(image, broker_id)),
                tuple(default_directory(image, broker_id) for broker_id in replicas),
            )
        isr, directories = known
        return PartitionRecord(
            partition_id, topic_id, replicas, isr, (), (), isr[0], 0, 0, directories=directories
        )


def default_directory(image: MetadataImage, broker_id: int) -> bytes:
    """Return the directory of a new replica: the broker's only one, or unassigned: it chooses."""
    log_dirs = image.cluster.brokers[broker_id].log_dirs
    return log_dirs[0] if len(log_dirs) == 1 else DIRECTORY_UNASSIGNED


def same_brokers(image: MetadataImage, later: MetadataImage) -> bool:
    """Return whether the brokers of `image` have the same states, processes and directories.

    Only those that changed between the images are compared; a new one doesn't matter.
    """
    if image.cluster is later.cluster:
        return True
    changes = later.cluster.brokers.changes_since(image.cluster.brokers)
    return all(
        before is None
        or (
            broker is not None
            and (broker.active, broker.fenced) == (before.active, before.fenced)
            and broker.broker_epoch == before.broker_epoch
            and broker.log_dirs == before.log_dirs
            and broker.cordoned_log_dirs == before.cordoned_log_dirs
        )
        for _, before, broker in changes
    )
