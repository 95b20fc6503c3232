"""Updates what is derived from all brokers: ids in order, states, racks, owners of directories.

Rule: each broker that changed is compared with its state in the image before, once a delta. So a
registration costs the same with ten brokers and with ten thousand.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Generator, Mapping

from metadata.buckets import STEP, BucketMap
from metadata.image.brokers import (
    BrokerRegistration,
    Rack,
    RackName,
    rack_name,
    takes_replicas,
)
from metadata.image.overlay import Overlay
from metadata.image.sorted_keys import SortedKeys

_Ring = tuple[RackName, bool]
"""(rack, fenced): brokers of one rack in one state."""


class DerivedBrokers:
    """The changes to the derived state, from the brokers that changed."""

    def __init__(self, by_directory: BucketMap[bytes, tuple[int, ...]]) -> None:
        self.ids: dict[int, bool | None] = {}
        """True: a broker is registered now; None: it is no more."""
        self.fenced: dict[int, bool | None] = {}
        """True: a broker is fenced now; None: it is no more."""
        self.stopping = 0
        """How many brokers more are in controlled shutdown and not fenced; negative: fewer."""
        self._rings = defaultdict[_Ring, dict[int, bool | None]](dict)
        self.by_directory = Overlay(by_directory)

    def find(
        self,
        changed: Mapping[int, BrokerRegistration | None],
        were: BucketMap[int, BrokerRegistration],
    ) -> Generator[None, None, None]:
        """Compare each changed broker with its registration before; yields after many."""
        for number, (broker_id, after) in enumerate(changed.items(), 1):
            if number % STEP == 0:
                yield
            before = were.get(broker_id)
            if (before is None) != (after is None):
                self.ids[broker_id] = None if after is None else True
            fenced = after is not None and after.fenced
            if fenced != (before is not None and before.fenced):
                self.fenced[broker_id] = True if fenced else None
            self.stopping += _stops(after) - _stops(before)
            self._move(broker_id, _ring(before), _ring(after))
            self._own(broker_id, _directories(before), _directories(after))

    def _move(self, broker_id: int, before: _Ring | None, after: _Ring | None) -> None:
        """Note that a broker moved from one ring to another; None: to or from nowhere."""
        if before == after:
            return
        if before is not None:
            self._rings[before][broker_id] = None
        if after is not None:
            self._rings[after][broker_id] = True

    def _own(self, broker_id: int, before: tuple[bytes, ...], after: tuple[bytes, ...]) -> None:
        """Note which directories a broker has. A log may give one directory to several brokers."""
        if before == after:
            return
        for directory in {*before, *after}:
            owners = {*(self.by_directory.get(directory) or ())}
            if directory in after:
                owners.add(broker_id)
            else:
                owners.discard(broker_id)
            self.by_directory.changed[directory] = tuple(sorted(owners)) or None

    def apply_racks(self, racks: tuple[Rack, ...]) -> Generator[None, None, tuple[Rack, ...]]:
        """Return the racks after the changes, in order; none of them is empty."""
        if not self._rings:
            return racks
        after = list(racks)
        for (name, fenced), changes in self._rings.items():
            place = bisect_left(after, name, key=_name_of)
            known = place < len(after) and after[place].name == name
            rack = after[place] if known else Rack(name, SortedKeys(), SortedKeys())
            if fenced:
                rack = Rack(name, rack.live, (yield from rack.fenced.changing(changes)))
            else:
                rack = Rack(name, (yield from rack.live.changing(changes)), rack.fenced)
            filled = len(rack.live) or len(rack.fenced)
            after[place : place + known] = [rack] if filled else []
        return tuple(after)


def _ring(broker: BrokerRegistration | None) -> _Ring | None:
    if broker is None or not takes_replicas(broker):
        return None
    return rack_name(broker), broker.fenced


def _stops(broker: BrokerRegistration | None) -> bool:
    return broker is not None and broker.in_controlled_shutdown and not broker.fenced


def _directories(broker: BrokerRegistration | None) -> tuple[bytes, ...]:
    return () if broker is None else broker.log_dirs


def _name_of(rack: Rack) -> RackName:
    return rack.name
