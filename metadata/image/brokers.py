"""A broker's registration, and what follows from it alone.

Rule: everything here is a function of one registration. What follows from all of them is in
`cluster` and kept up to date by `derived_brokers`.
"""

from typing import Final

import msgspec

from metadata.image.sorted_keys import SortedKeys
from metadata.records import BrokerEndpoint, BrokerFeature

NOT_SHUTTING_DOWN: Final = -1
"""`BrokerRegistration.controlled_shutdown_offset` of a broker that isn't shutting down."""

RackName = tuple[bool, str]
"""(the broker names a rack, its name). Brokers without a rack are one rack, which sorts first."""


class BrokerRegistration(msgspec.Struct, frozen=True):
    """A broker's registration, from the records about it."""

    broker_id: int
    incarnation_id: bytes
    broker_epoch: int
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    controlled_shutdown_offset: int = NOT_SHUTTING_DOWN
    """The offset that the slowest active broker must have applied before this one may stop."""
    is_migrating_zk_broker: bool = False
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    @property
    def active(self) -> bool:
        """Neither fenced nor shutting down, so it may lead partitions and get replicas."""
        return not self.fenced and not self.in_controlled_shutdown


class Rack(msgspec.Struct, frozen=True):
    """The brokers of one rack on which new replicas may be placed, by id in order."""

    name: RackName
    live: SortedKeys[int]
    fenced: SortedKeys[int]


def is_cordoned(broker: BrokerRegistration) -> bool:
    """Return whether all log directories of a broker are cordoned (KIP-1066)."""
    cordoned = broker.cordoned_log_dirs
    return bool(cordoned) and bool(broker.log_dirs) and set(broker.log_dirs) <= set(cordoned or ())


def takes_replicas(broker: BrokerRegistration) -> bool:
    """Return whether new replicas may be placed on a broker; a fenced one may get some, too."""
    return not broker.in_controlled_shutdown and not is_cordoned(broker)


def rack_name(broker: BrokerRegistration) -> RackName:
    """Return the name by which racks are in order."""
    return broker.rack is not None, broker.rack or ""
