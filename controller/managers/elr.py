"""Switching eligible leader replicas off (KIP-966).

Without ELR nobody is elected from one, and a partition's last in-sync replica stays in its ISR. So
all ELRs are emptied first, in rounds if there are many, and a partition without any in-sync replica
stands in the way: nobody could be elected for it without loss.
"""

from collections.abc import Generator, Iterator

from controller.managers.sweep import Changes, Sweep
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage, Partition
from metadata.partition_key import PlainPartitionKey
from metadata.records import PartitionChangeRecord

_STEP = 64


def empty_elrs(image: MetadataImage, sweep: Sweep) -> Changes:
    """Return the changes of the next round that empty the ELRs of all partitions.

    Raises LogbergError FEATURE_UPDATE_FAILED if a partition has no in-sync replica.
    """
    yield from _check_isrs(image)
    topics = image.topics

    def keys() -> Iterator[PlainPartitionKey]:
        # An ELR is beside an ISR that is too small, so its topic lacks in-sync replicas.
        return (
            (topic_id, number)
            for topic_id, _ in topics.lacks.unordered_items()
            for number in topics.ids_of(topic_id)
        )

    def rank(key: PlainPartitionKey) -> int | None:
        return 0 if has_elr(topics.partitions[key]) else None

    def change(key: PlainPartitionKey) -> PartitionChangeRecord | None:
        partition = topics.partitions.get(key)
        return None if partition is None else emptied(key, partition)

    return (yield from sweep.changes(keys, rank, change))


def has_elr(partition: Partition) -> bool:
    """Tell whether a partition has an ELR or remembers its last leader."""
    return bool(partition.elr or partition.last_known_elr)


def emptied(key: PlainPartitionKey, partition: Partition) -> PartitionChangeRecord | None:
    """Return the change that empties a partition's ELR and last known leader, or None."""
    if not has_elr(partition):
        return None
    return PartitionChangeRecord(
        key[1],
        key[0],
        eligible_leader_replicas=() if partition.elr else None,
        last_known_elr=() if partition.last_known_elr else None,
    )


def _check_isrs(image: MetadataImage) -> Generator[None, None, None]:
    """Check that each partition has an in-sync replica. Raises LogbergError."""
    for number, key in enumerate(image.topics.leaderless, 1):
        partition = image.topics.partitions[key]
        if not partition.isr:
            name = image.topics.by_id[key[0]].name
            eligible = ", ".join(map(str, partition.elr)) or "none"
            raise LogbergError(
                ErrorCode.FEATURE_UPDATE_FAILED,
                f"partition {name}-{key[1]} has no in-sync replica: its eligible leader replicas "
                f"({eligible}) would be forgotten. Start one of these brokers, or elect a leader "
                "with `logberg partitions elect --unclean`, and ask again",
            )
        if number % _STEP == 0:
            yield
