"""Brokers: register, heartbeat, fence, unfence, controlled shutdown, unregister.

Rule: registrations and flags come from the image. Silence and applied offsets come from the
heartbeat table, which is soft: what rests on it becomes a fact only as a record.

Kafka's faults that are not repeated: the offset that a stopping broker waits for is in the image,
so it survives a failover (KIP-631's does not); a second process with the same id is refused also
while the first is fenced and alive; and a broker that has begun to stop is not unfenced again, as
only a new process clears its flag.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from controller.managers.partition_events import (
    ELR_FEATURE,
    elect_leaderless,
    leave_isr,
    leave_isr_and_elr,
)
from controller.managers.registrations import check_registration
from controller.managers.sweep import Sweep
from controller.managers.unregistering import check_nothing_lost
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.features import levels_of
from metadata.image import MetadataImage
from metadata.image.cluster import BrokerRegistration
from metadata.messages import MetadataFetchRequest, Registration, UnregisterBrokerReply, WantedState
from metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControlledShutdownChange,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from metadata.uuids import parse_uuid_of

_NOWHERE_YET = 2**63 - 1
"""Lowest applied offset when no broker is active."""
_NO_EPOCH = -1
_RESERVED_DIRECTORIES = 100
Working = Generator[None, None, ControllerResult]


class RegisteredState(Enum):
    """A broker as the controller's table has it; derived, never stored."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"
    """Fenced, and told that it may go."""


class Beat(NamedTuple):
    """What a broker says of itself in a heartbeat."""

    broker_id: int
    broker_epoch: int
    applied_offset: int
    wanted: WantedState


class StateChange(NamedTuple):
    """What a broker is, and is to become."""

    now: RegisteredState
    then: RegisteredState


def state_of(broker: BrokerRegistration) -> RegisteredState:
    """The state that follows from the registration alone."""
    if broker.fenced:
        return RegisteredState.FENCED
    if broker.in_controlled_shutdown:
        return RegisteredState.CONTROLLED_SHUTDOWN
    return RegisteredState.UNFENCED


def has_caught_up(broker: BrokerRegistration, applied_offset: int) -> bool:
    """It has applied its own registration; the log's end would be a moving target."""
    return applied_offset > broker.broker_epoch


def registered(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """Return the registration that a request speaks for. Raises LogbergError STALE_BROKER_EPOCH."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        known = "it is not registered" if broker is None else f"its epoch is {broker.broker_epoch}"
        raise LogbergError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} has no epoch {broker_epoch}: {known}; stop this process, a new "
            "one registers",
        )
    return broker


class Sessions(Protocol):
    """Which brokers were heard from, as the leader knows it; see `controller.leader.heartbeats`."""

    def is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        """Tell whether that process was heard from within a session (or may have been)."""
        ...

    def applied_offset(self, broker_id: int) -> int:
        """The offset that a broker reports to have applied; -1: not yet to this leader."""
        ...

    def silence_s(self, broker_id: int) -> float | None:
        """Awake seconds since the last contact; None: none since this leader began."""
        ...


class BrokerManager:
    """Decides about brokers."""

    def __init__(self, heartbeats: Sessions) -> None:
        self._heartbeats = heartbeats

    def register(
        self, image: MetadataImage, request: MetadataFetchRequest, sweep: Sweep | None = None
    ) -> Working:
        """Register a broker process, or amend the registration of the same one."""
        registration = request.registration
        if registration is None:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, "without a broker epoch, `registration` is needed"
            )
        incarnation_id = parse_uuid_of("incarnationId", request.incarnation_id)
        before = image.cluster.brokers.get(request.broker_id)
        same = before is not None and before.incarnation_id == incarnation_id
        if (
            before is not None
            and not same
            and self._heartbeats.is_alive(before.broker_id, before.broker_epoch)
        ):
            raise LogbergError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"another process with broker id {request.broker_id} is alive; stop it, or wait "
                "until its session ends if it was just killed",
            )
        check_registration(registration)
        log_dirs = _checked_directories(image, request.broker_id, registration)
        _check_features(image, registration)
        leaving: list[Record] = []
        if before is not None and not same and image.features.levels.get(ELR_FEATURE, 0) > 0:
            leaving.extend((yield from leave_isr_and_elr(image, request.broker_id, sweep)))
        elif before is not None and not same and not before.fenced:
            # Its session ended and the fence decision is yet to come: nothing may stay led by
            # a process that is gone.
            leaving.extend((yield from leave_isr(image, request.broker_id, sweep)))
        if leaving and sweep is not None and sweep.more:
            return ControllerResult(leaving, reason="registration", unfinished=True)
        record = _registration(request, registration, incarnation_id, log_dirs)
        if before is not None and same:
            return ControllerResult((_amended(record, before),), reason="registration")
        return _with_epoch(record, leaving, image.offset)

    def state_change(self, image: MetadataImage, beat: Beat) -> StateChange:
        """What the heartbeat's broker is and becomes. Raises LogbergError STALE_BROKER_EPOCH."""
        broker = registered(image, beat.broker_id, beat.broker_epoch)
        now = state_of(broker)
        stop = beat.wanted is WantedState.STOPPING
        if now is RegisteredState.FENCED:
            if stop:
                return StateChange(now, RegisteredState.SHUTDOWN_NOW)
            online = beat.wanted is WantedState.ONLINE and not broker.in_controlled_shutdown
            if online and has_caught_up(broker, beat.applied_offset):
                return StateChange(now, RegisteredState.UNFENCED)
            return StateChange(now, now)
        if now is RegisteredState.UNFENCED:
            if beat.wanted is WantedState.FENCED:
                return StateChange(now, RegisteredState.FENCED)
            if stop and image.topics.leads(beat.broker_id):
                return StateChange(now, RegisteredState.CONTROLLED_SHUTDOWN)
            return StateChange(now, RegisteredState.SHUTDOWN_NOW if stop else now)
        waits = image.topics.leads(beat.broker_id) > 0
        if waits or broker.controlled_shutdown_offset > self._lowest_applied(image):
            return StateChange(now, now)
        return StateChange(now, RegisteredState.SHUTDOWN_NOW)

    def heartbeat(self, image: MetadataImage, beat: Beat, sweep: Sweep | None = None) -> Working:
        """Write what a heartbeat changes: no records when nothing does."""
        sweep = sweep or Sweep()
        if sweep.begun and sweep.electing:
            # The heartbeat has done its part. What happened since is no business of an old one.
            return (yield from self.elect_where_possible(image, sweep))
        now, then = self.state_change(image, beat)
        if now is then or (now is RegisteredState.FENCED and then is RegisteredState.SHUTDOWN_NOW):
            # A fenced broker that is told to go has nothing left to give up.
            return ControllerResult(())
        if then is RegisteredState.UNFENCED:
            # Unfenced first: a broker that is fenced can't lead.
            sweep.electing = True
            elected = yield from elect_leaderless(image, beat.broker_id, sweep)
            unfence = _change(beat, fenced=FencingChange.UNFENCE)
            return ControllerResult((unfence, *elected), reason="caught up", unfinished=sweep.more)
        moved = yield from leave_isr(image, beat.broker_id, sweep)
        if sweep.more:
            return ControllerResult(moved, reason="it wants to leave", unfinished=True)
        if then is RegisteredState.CONTROLLED_SHUTDOWN:
            begin = _change(beat, shutdown=ControlledShutdownChange.IN_CONTROLLED_SHUTDOWN)
            return ControllerResult((begin, *moved), reason="it wants to stop")
        fence = _change(beat, fenced=FencingChange.FENCE)
        reason = "it wants to be fenced" if then is RegisteredState.FENCED else "it may stop"
        return ControllerResult((*moved, fence), reason=reason)

    def elect_where_possible(self, image: MetadataImage, sweep: Sweep) -> Working:
        """Give a leader to whatever has none and may have one: the rest of an unfencing."""
        elected = yield from elect_leaderless(image, None, sweep)
        return ControllerResult(elected, reason="a broker is back", unfinished=sweep.more)

    def fence_silent(
        self, image: MetadataImage, broker_id: int, sweep: Sweep | None = None
    ) -> Working:
        """Fence a broker whose session has ended, if that is still so.

        What has begun is ended: a process that comes back between two rounds is unfenced later.
        A new process is none of those rounds' business.
        """
        sweep = sweep or Sweep()
        broker = image.cluster.brokers.get(broker_id)
        if (
            broker is None
            or broker.fenced
            or (sweep.begun and broker.broker_epoch != sweep.broker_epoch)
            or (not sweep.begun and self._heartbeats.is_alive(broker_id, broker.broker_epoch))
        ):
            return ControllerResult(())
        sweep.broker_epoch = broker.broker_epoch
        silence = self._heartbeats.silence_s(broker_id)
        heard = "since this leader began" if silence is None else f"for {silence:.1f} s"
        moved = yield from leave_isr(image, broker_id, sweep)
        if sweep.more:
            return ControllerResult(moved, reason=f"not heard from {heard}", unfinished=True)
        fence = BrokerRegistrationChangeRecord(
            broker_id, broker.broker_epoch, fenced=FencingChange.FENCE
        )
        return ControllerResult((*moved, fence), reason=f"not heard from {heard}")

    def unregister(
        self, image: MetadataImage, broker_id: int, sweep: Sweep | None = None, *, force: bool
    ) -> Working:
        """Forget a broker; without `force` only one with which nothing is lost.

        That is asked in the first round and in the last one, and once the broker is online.
        """
        sweep = sweep or Sweep()
        broker = image.cluster.brokers.get(broker_id)
        if broker is None:
            raise LogbergError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}"
            )
        begun = sweep.begun
        if not force and not (begun and broker.fenced):
            yield from check_nothing_lost(image, broker)
        moved = yield from leave_isr_and_elr(image, broker_id, sweep)
        if sweep.more:
            return ControllerResult(moved, unfinished=True)
        if not force and begun:
            yield from check_nothing_lost(image, broker)
        record = UnregisterBrokerRecord(broker_id, broker.broker_epoch)
        return ControllerResult((*moved, record), UnregisterBrokerReply(broker_id=broker_id))

    def _lowest_applied(self, image: MetadataImage) -> int:
        """What the slowest active broker has applied; -1 while one has yet to tell us."""
        return min(
            (
                self._heartbeats.applied_offset(broker.broker_id)
                for broker in image.cluster.brokers.values()
                if broker.active
            ),
            default=_NOWHERE_YET,
        )


def _change(
    beat: Beat,
    fenced: FencingChange = FencingChange.NONE,
    shutdown: ControlledShutdownChange = ControlledShutdownChange.NONE,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        beat.broker_id, beat.broker_epoch, fenced=fenced, in_controlled_shutdown=shutdown
    )


def _registration(
    request: MetadataFetchRequest,
    registration: Registration,
    incarnation_id: bytes,
    log_dirs: tuple[bytes, ...],
) -> RegisterBrokerRecord:
    """The record of a process that is new: fenced, and its epoch not known yet."""
    return RegisterBrokerRecord(
        request.broker_id,
        incarnation_id,
        _NO_EPOCH,
        tuple(
            BrokerEndpoint(e.name, e.host, e.port, e.security_protocol)
            for e in sorted(registration.endpoints, key=lambda endpoint: endpoint.name)
        ),
        tuple(
            BrokerFeature(f.name, f.min_supported_version, f.max_supported_version)
            for f in sorted(registration.features, key=lambda feature: feature.name)
        ),
        registration.rack,
        log_dirs=log_dirs,
    )


def _amended(record: RegisterBrokerRecord, before: BrokerRegistration) -> RegisterBrokerRecord:
    """The record of a process that is registered: it keeps its epoch and its flags."""
    return msgspec.structs.replace(
        record,
        broker_epoch=before.broker_epoch,
        fenced=before.fenced,
        in_controlled_shutdown=before.in_controlled_shutdown,
    )


def _with_epoch(
    record: RegisterBrokerRecord, leaving: list[Record], offset: int
) -> ControllerResult:
    """A new process's registration: its epoch is the offset of its own record."""
    own = msgspec.structs.replace(record, broker_epoch=offset + len(leaving))
    return ControllerResult(
        (*leaving, own),
        reason="registration",
        rebase=lambda moved_to: _with_epoch(record, leaving, moved_to),
    )


def _checked_directories(
    image: MetadataImage, broker_id: int, registration: Registration
) -> tuple[bytes, ...]:
    """Directory ids: not reserved, no duplicates, no other broker's. Raises LogbergError."""
    directories = tuple(parse_uuid_of("logDirs", text) for text in registration.log_dirs)
    refuse: Callable[[str], LogbergError] = lambda why: LogbergError(  # noqa: E731
        ErrorCode.INVALID_REGISTRATION, f"logDirs: {why}"
    )
    for directory in directories:
        if int.from_bytes(directory, "big") < _RESERVED_DIRECTORIES:
            raise refuse("one of them is a reserved id")
    if len(set(directories)) < len(directories):
        raise refuse("one of them is there twice")
    for other in image.cluster.brokers.values():
        shared = set(other.log_dirs) & set(directories)
        if other.broker_id != broker_id and shared:
            raise refuse(f"one of them belongs to broker {other.broker_id}: is the disk a copy?")
    return directories


def _check_features(image: MetadataImage, registration: Registration) -> None:
    """Every finalised feature must lie in what the broker supports. Raises LogbergError."""
    declared = [
        (f.name, f.min_supported_version, f.max_supported_version) for f in registration.features
    ]
    for name, level in image.features.levels.items():
        supported = levels_of(declared, name)
        if level not in supported:
            raise LogbergError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"feature {name} is finalised at level {level}, and the broker supports "
                f"{supported}; use software that supports it",
            )
