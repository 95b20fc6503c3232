"""The registered brokers and controllers.

Rule: a registration's flags belong to an incarnation. A broker that amends its registration keeps
its epoch and the flags fenced and in-controlled-shutdown; only a new incarnation clears them
(KIP-631, 841). The controller writes the values that hold, and replay uses them as they are
written. Release 0.1 wrote an amendment with a new epoch and as fenced. So in a log where
`logberg.version` is not finalised, replay keeps the values from before the amendment (ADR 0015).

The shutdown offset of a broker is the end offset of the batch that began its controlled shutdown.
An active broker that has applied that offset has applied the change of the leaders. Replay learns
the offset when the batch ends. The image holds it, so that a new active controller knows it (in
Kafka it is lost). An amendment during the shutdown doesn't change it.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_bytes, mix_int
from metadata.features import LITERAL_AMENDMENTS_FROM, LOGBERG_VERSION
from metadata.image.brokers import NOT_SHUTTING_DOWN, BrokerRegistration, Rack
from metadata.image.derived_brokers import DerivedBrokers
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    ShutdownOffsetRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)

_SETTLED_AT_BATCH_END = -2
"""The same of a broker whose shutdown began in the batch that is being replayed."""

ControllerRegistration = RegisterControllerRecord
"""A controller's registration is its record."""


class ClusterImage(msgspec.Struct, frozen=True):
    """Brokers and controllers by id, and what is derived from the brokers.

    Only the two maps hold what the records say. What is derived is in no snapshot and no state
    hash. With it a frequent question needs no look at all brokers.
    """

    brokers: BucketMap[int, BrokerRegistration]
    controllers: BucketMap[int, ControllerRegistration]
    ids: SortedKeys[int]
    """The ids of all brokers, in order."""
    fenced: SortedKeys[int]
    """The ids of the fenced brokers, in order."""
    stopping: int
    """How many brokers are in controlled shutdown and not fenced."""
    racks: tuple[Rack, ...]
    """By name in order, the brokers that may get new replicas; no rack is empty."""
    by_directory: BucketMap[bytes, tuple[int, ...]]
    """By the id of a log directory, the brokers that registered with it, in order."""


EMPTY_CLUSTER = ClusterImage(
    BucketMap(mix_int),
    BucketMap(mix_int),
    SortedKeys(),
    SortedKeys(),
    0,
    (),
    BucketMap(mix_bytes),
)


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    """Return the record that restores a registration, without its shutdown offset."""
    return RegisterBrokerRecord(
        broker.broker_id,
        broker.incarnation_id,
        broker.broker_epoch,
        broker.end_points,
        broker.features,
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.log_dirs,
        broker.is_migrating_zk_broker,
        broker.cordoned_log_dirs,
    )


def broker_records(broker_id: int, broker: BrokerRegistration) -> tuple[Record, ...]:
    """Return the records that restore a registration."""
    if broker.controlled_shutdown_offset == NOT_SHUTTING_DOWN:
        return (broker_record(broker),)
    return (
        broker_record(broker),
        ShutdownOffsetRecord(broker_id, broker.controlled_shutdown_offset),
    )


class ClusterDelta:
    """Replays the registrations of brokers and controllers, and their changes."""

    def __init__(
        self, image: ClusterImage, unsettled: list[int], levels: Overlay[str, int]
    ) -> None:
        """Begin from `image`.

        Replay adds to `unsettled` the brokers whose shutdown offset is the end of this batch.
        `levels` are the finalised feature levels at the record that is being replayed.
        """
        self._image = image
        self._unsettled = unsettled
        self._levels = levels
        self.brokers = Overlay(image.brokers)
        self.controllers = Overlay(image.controllers)

    def apply_in_steps(self) -> Generator[None, None, ClusterImage]:
        image = self._image
        derived = DerivedBrokers(image.by_directory)
        yield from derived.find(self.brokers.changed, image.brokers)
        return ClusterImage(
            (yield from self.brokers.apply_in_steps()),
            (yield from self.controllers.apply_in_steps()),
            (yield from image.ids.changing(derived.ids)),
            (yield from image.fenced.changing(derived.fenced)),
            image.stopping + derived.stopping,
            (yield from derived.apply_racks(image.racks)),
            (yield from derived.by_directory.apply_in_steps()),
        )

    @replays(RegisterBrokerRecord)
    def register_broker(self, record: RegisterBrokerRecord, offset: int) -> None:
        """Replace the registration. The module explains the amendments of release 0.1."""
        before = self.brokers.get(record.broker_id)
        epoch, fenced, leaving = record.broker_epoch, record.fenced, record.in_controlled_shutdown
        shutdown_offset = _SETTLED_AT_BATCH_END if leaving else NOT_SHUTTING_DOWN
        if before is not None and before.incarnation_id == record.incarnation_id:
            if (self._levels.get(LOGBERG_VERSION) or 0) < LITERAL_AMENDMENTS_FROM:
                epoch, fenced = before.broker_epoch, before.fenced
                leaving = before.in_controlled_shutdown
            if leaving and before.in_controlled_shutdown:
                shutdown_offset = before.controlled_shutdown_offset
            elif not leaving:
                shutdown_offset = NOT_SHUTTING_DOWN
        if shutdown_offset == _SETTLED_AT_BATCH_END:
            self._unsettled.append(record.broker_id)
        registration = BrokerRegistration(
            record.broker_id,
            record.incarnation_id,
            epoch,
            record.end_points,
            record.features,
            record.rack,
            fenced,
            leaving,
            record.log_dirs,
            shutdown_offset,
            record.is_migrating_zk_broker,
            record.cordoned_log_dirs,
        )
        self.brokers.set(record.broker_id, registration)

    @replays(UnregisterBrokerRecord)
    def unregister_broker(self, record: UnregisterBrokerRecord, offset: int) -> None:
        self._known(record.broker_id, record.broker_epoch, offset)
        self.brokers.remove(record.broker_id)

    @replays(FenceBrokerRecord)
    def fence_broker(self, record: FenceBrokerRecord, offset: int) -> None:
        self._set_fenced(record.id, record.epoch, True, offset)

    @replays(UnfenceBrokerRecord)
    def unfence_broker(self, record: UnfenceBrokerRecord, offset: int) -> None:
        self._set_fenced(record.id, record.epoch, False, offset)

    def _set_fenced(self, broker_id: int, epoch: int, fenced: bool, offset: int) -> None:
        broker = self._known(broker_id, epoch, offset)
        self.brokers.set(broker_id, msgspec.structs.replace(broker, fenced=fenced))

    @replays(BrokerRegistrationChangeRecord)
    def change_broker(self, record: BrokerRegistrationChangeRecord, offset: int) -> None:
        """Fence, unfence, begin a controlled shutdown, or set log directories (KIP-841, 858)."""
        broker = self._known(record.broker_id, record.broker_epoch, offset)
        if record.fenced not in (FencingChange.UNFENCE, FencingChange.NONE, FencingChange.FENCE):
            raise ReplayError(offset, f"fenced is {record.fenced}; it must be -1, 0 or 1")
        if record.in_controlled_shutdown not in (0, 1):
            said = record.in_controlled_shutdown
            raise ReplayError(offset, f"in_controlled_shutdown is {said}; it must be 0 or 1")
        fenced, shutdown_offset = broker.fenced, broker.controlled_shutdown_offset
        if record.fenced != FencingChange.NONE:
            fenced = record.fenced == FencingChange.FENCE
        if record.in_controlled_shutdown and not broker.in_controlled_shutdown:
            shutdown_offset = _SETTLED_AT_BATCH_END
            self._unsettled.append(record.broker_id)
        cordoned = record.cordoned_log_dirs
        changed = msgspec.structs.replace(
            broker,
            fenced=fenced,
            in_controlled_shutdown=bool(
                broker.in_controlled_shutdown or record.in_controlled_shutdown
            ),
            log_dirs=record.log_dirs or broker.log_dirs,
            controlled_shutdown_offset=shutdown_offset,
            cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
        )
        self.brokers.set(record.broker_id, changed)

    @replays(ShutdownOffsetRecord)
    def restore_shutdown_offset(self, record: ShutdownOffsetRecord, offset: int) -> None:
        """Set a broker's shutdown offset from a snapshot."""
        broker = self.brokers.get(record.broker_id)
        if broker is None or not broker.in_controlled_shutdown:
            raise ReplayError(offset, f"broker {record.broker_id} isn't in controlled shutdown")
        changed = msgspec.structs.replace(broker, controlled_shutdown_offset=record.offset)
        self.brokers.set(record.broker_id, changed)

    def settle(self, broker_id: int, end_offset: int) -> None:
        """Set the broker's shutdown offset at the end of the batch that began the shutdown."""
        broker = self.brokers.get(broker_id)
        if broker is not None and broker.controlled_shutdown_offset == _SETTLED_AT_BATCH_END:
            changed = msgspec.structs.replace(broker, controlled_shutdown_offset=end_offset)
            self.brokers.set(broker_id, changed)

    @replays(RegisterControllerRecord)
    def register_controller(self, record: RegisterControllerRecord, offset: int) -> None:
        self.controllers.set(record.controller_id, record)

    @replays(UnregisterControllerRecord)
    def unregister_controller(self, record: UnregisterControllerRecord, offset: int) -> None:
        if record.controller_id not in self.controllers:
            raise ReplayError(offset, f"controller {record.controller_id} isn't registered")
        self.controllers.remove(record.controller_id)

    def _known(self, broker_id: int, epoch: int, offset: int) -> BrokerRegistration:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise ReplayError(offset, f"broker {broker_id} isn't registered")
        if broker.broker_epoch != epoch:
            raise ReplayError(
                offset, f"broker {broker_id} has epoch {broker.broker_epoch}, not {epoch}"
            )
        return broker


TABLES: Final = (
    ImageTable("brokers", "cluster", "brokers", broker_records, "broker", ("broker_id",)),
    ImageTable("controllers", "cluster", "controllers", itself, "controller", ("controller_id",)),
)
