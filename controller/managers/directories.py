"""Decides about the log directories of brokers (KIP-858, KIP-1066).

A broker says in which of its directories a replica lies, and which of its directories work. A
replica on a directory that does not work is treated as if its broker were gone, for this partition
alone. A broker whose directories are all cordoned gets no new replicas.
"""

from collections.abc import Callable
from typing import Final

from metadata.features import METADATA_VERSION
from metadata.image import BrokerRegistration, MetadataImage, Partition
from metadata.records import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

_CORDONS_FROM: Final = 30
"""The level of metadata.version, 4.3-IV0."""


def may_cordon(image: MetadataImage) -> bool:
    """Return whether registrations may name cordoned directories (KIP-1066)."""
    return image.features.levels.get(METADATA_VERSION, 0) >= _CORDONS_FROM


def is_online(broker: BrokerRegistration, directory: bytes) -> bool:
    """Return whether a replica in this directory can be served.

    A broker that names no directories is believed: it would stop if none of them worked.
    """
    if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    if directory == DIRECTORY_LOST:
        return False
    return not broker.log_dirs or directory in broker.log_dirs


def directory_of(partition: Partition, broker_id: int) -> bytes:
    """Return the directory of a broker's replica. The partition must have one there."""
    if not partition.directories:
        return DIRECTORY_MIGRATING
    return partition.directories[partition.replicas.index(broker_id)]


def with_online_directory(
    image: MetadataImage, partition: Partition, acceptable: Callable[[int], bool]
) -> Callable[[int], bool]:
    """Narrow the brokers that may lead a partition to those whose replica can be served."""
    if not partition.directories:
        return acceptable
    brokers = image.cluster.brokers

    def may_lead(broker_id: int) -> bool:
        if not acceptable(broker_id):
            return False
        broker = brokers.get(broker_id)
        return (
            broker is None
            or broker_id not in partition.replicas
            or is_online(broker, directory_of(partition, broker_id))
        )

    return may_lead


def may_lead(image: MetadataImage, partition: Partition) -> Callable[[int], bool]:
    """Return which brokers may lead a partition: active ones whose replica can be served."""

    def is_active(broker_id: int) -> bool:
        broker = image.cluster.brokers.get(broker_id)
        return broker is not None and broker.active

    return with_online_directory(image, partition, is_active)
