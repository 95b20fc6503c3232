"""Decides about brokers: register, heartbeat, fence, unfence, controlled shutdown, unregister.

Registrations and flags come from the image. Silence and applied offsets come from the heartbeat
table, which is the leader's soft state. What a decision concludes from them goes into the log.

Three faults of Kafka are avoided here. The offset that a stopping broker waits for is in the image,
so it survives a failover (KIP-631's does not). A second process with the same broker id is refused
also while the first one is fenced and alive. A broker that has begun to stop is not unfenced again:
only a new process clears its flag.
"""

from collections.abc import Generator
from typing import Final, Protocol

import msgspec

from controller.managers.broker_states import (
    Beat,
    RegisteredState,
    StateChange,
    has_caught_up,
    registered,
    state_of,
)
from controller.managers.partition_events import (
    elect_leaderless,
    leave_isr,
    leave_isr_and_elr,
)
from controller.managers.registrations import registration_record
from controller.managers.sweep import Changes, Sweep
from controller.managers.topic_rules import TopicDefaults, elr_enabled
from controller.managers.unregistering import check_nothing_lost
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.brokers import BrokerRegistration
from metadata.messages import MetadataFetchRequest, Registration, UnregisterBrokerReply, WantedState
from metadata.records import (
    BrokerRegistrationChangeRecord,
    ControlledShutdownChange,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from metadata.uuids import parse_uuid_of

_ONLINE: Final = WantedState.ONLINE
_STAYS_ONLINE: Final = StateChange(RegisteredState.UNFENCED, RegisteredState.UNFENCED)
"""What nearly every heartbeat asks for, and what it changes."""

Working = Generator[None, None, ControllerResult]


class Sessions(Protocol):
    """Which brokers the leader heard from. `controller.leader.heartbeats` implements it."""

    def is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether that process was heard from within a session, or may have been."""
        ...

    def lowest_applied(self) -> int | None:
        """Return the lowest applied offset of active brokers; None: no broker is active.

        -1: one of them has not reported its offset to this leader yet.
        """
        ...

    def silence_s(self, broker_id: int) -> float | None:
        """Return awake seconds since the last contact; None if this leader had none."""
        ...


class BrokerManager:
    """Each public method reads an image and returns records."""

    def __init__(self, heartbeats: Sessions, defaults: TopicDefaults) -> None:
        self._heartbeats = heartbeats
        self._defaults = defaults

    def register(
        self, image: MetadataImage, request: MetadataFetchRequest, sweep: Sweep | None = None
    ) -> Working:
        """Register a broker process, or amend the registration of the same process.

        Raises LogbergError, for example DUPLICATE_BROKER_REGISTRATION.
        """
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
        record = registration_record(image, request, registration)
        leaving: list[Record] = []
        if before is not None and not same:
            leaving.extend((yield from self._leave(image, before, registration, sweep)))
        if leaving and sweep is not None and sweep.more:
            return ControllerResult(leaving, reason="registration", unfinished=True)
        if before is not None and same:
            return ControllerResult((_amended(record, before),), reason="registration")
        return _with_epoch(record, leaving, image.offset)

    def _leave(
        self,
        image: MetadataImage,
        before: BrokerRegistration,
        registration: Registration,
        sweep: Sweep | None,
    ) -> Changes:
        """Take the old process of a broker out of the ISRs, and out of the ELRs where due."""
        clean = registration.previous_broker_epoch == before.broker_epoch
        if elr_enabled(image) and not clean:
            # The old process may have lost writes when it stopped (KIP-966).
            return (yield from leave_isr_and_elr(image, before.broker_id, self._defaults, sweep))
        if not before.fenced:
            # The old process's session has ended, and it isn't fenced yet. It must not stay the
            # leader of anything.
            return (yield from leave_isr(image, before.broker_id, self._defaults, sweep))
        return []

    def state_change(self, image: MetadataImage, beat: Beat) -> StateChange:
        """Return what a heartbeat changes. Raises LogbergError STALE_BROKER_EPOCH."""
        broker = registered(image, beat.broker_id, beat.broker_epoch)
        if beat.wanted is _ONLINE and broker.active:
            return _STAYS_ONLINE
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
        lowest = self._heartbeats.lowest_applied()
        behind = lowest is not None and lowest < broker.controlled_shutdown_offset
        if waits or behind:
            return StateChange(now, now)
        return StateChange(now, RegisteredState.SHUTDOWN_NOW)

    def heartbeat(self, image: MetadataImage, beat: Beat, sweep: Sweep | None = None) -> Working:
        """Return the records of what a heartbeat changes; none if it changes nothing.

        Raises LogbergError STALE_BROKER_EPOCH.
        """
        sweep = sweep or Sweep()
        if sweep.begun and sweep.electing:
            # The first round has unfenced the broker. Only the elections are left, and they must
            # not judge the broker again by this old heartbeat.
            return (yield from self.elect_where_possible(image, sweep, back=beat.broker_id))
        now, then = self.state_change(image, beat)
        if now is then or (now is RegisteredState.FENCED and then is RegisteredState.SHUTDOWN_NOW):
            # A fenced broker that may stop is in no ISR and leads nothing: there is no record.
            return ControllerResult(())
        if then is RegisteredState.UNFENCED:
            # The unfencing comes first, because a fenced broker can't lead.
            sweep.electing = True
            elected = yield from elect_leaderless(
                image, beat.broker_id, self._defaults, sweep, unfencing=True
            )
            unfence = _change(beat, fenced=FencingChange.UNFENCE)
            return ControllerResult((unfence, *elected), reason="caught up", unfinished=sweep.more)
        moved = yield from leave_isr(image, beat.broker_id, self._defaults, sweep)
        if sweep.more:
            return ControllerResult(moved, reason="it wants to leave", unfinished=True)
        if then is RegisteredState.CONTROLLED_SHUTDOWN:
            begin = _change(beat, shutdown=ControlledShutdownChange.IN_CONTROLLED_SHUTDOWN)
            return ControllerResult((begin, *moved), reason="it wants to stop")
        fence = _change(beat, fenced=FencingChange.FENCE)
        reason = "it wants to be fenced" if then is RegisteredState.FENCED else "it may stop"
        return ControllerResult((*moved, fence), reason=reason)

    def elect_where_possible(
        self,
        image: MetadataImage,
        sweep: Sweep,
        reason: str = "a broker is back",
        back: int | None = None,
    ) -> Working:
        """Elect a leader for each partition that has none and can have one.

        `back`: only for those with a replica on this broker; None: for all.
        """
        elected = yield from elect_leaderless(image, back, self._defaults, sweep)
        return ControllerResult(elected, reason=reason, unfinished=sweep.more)

    def fence_silent(
        self, image: MetadataImage, broker_id: int, sweep: Sweep | None = None
    ) -> Working:
        """Fence a broker whose session has ended, if that is still so.

        Once the first round is written, the fencing is finished even if the process comes back
        between two rounds. It is unfenced later. A new process of the same broker ends the rounds.
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
        moved = yield from leave_isr(image, broker_id, self._defaults, sweep)
        if sweep.more:
            return ControllerResult(moved, reason=f"not heard from {heard}", unfinished=True)
        fence = BrokerRegistrationChangeRecord(
            broker_id, broker.broker_epoch, fenced=FencingChange.FENCE
        )
        return ControllerResult((*moved, fence), reason=f"not heard from {heard}")

    def unregister(
        self, image: MetadataImage, broker_id: int, sweep: Sweep | None = None, *, force: bool
    ) -> Working:
        """Forget a broker. Without `force`, only if nothing is lost with it (`check_nothing_lost`).

        This is checked in the first round and in the last one. If the broker comes back online in
        between, it is checked in every round. Raises LogbergError BROKER_ID_NOT_REGISTERED,
        POLICY_VIOLATION.
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
        moved = yield from leave_isr_and_elr(image, broker_id, self._defaults, sweep)
        if sweep.more:
            return ControllerResult(moved, unfinished=True)
        if not force and begun:
            yield from check_nothing_lost(image, broker)
        record = UnregisterBrokerRecord(broker_id, broker.broker_epoch)
        return ControllerResult((*moved, record), UnregisterBrokerReply(broker_id=broker_id))


def _change(
    beat: Beat,
    fenced: FencingChange = FencingChange.NONE,
    shutdown: ControlledShutdownChange = ControlledShutdownChange.NONE,
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        beat.broker_id, beat.broker_epoch, fenced=fenced, in_controlled_shutdown=shutdown
    )


def _amended(record: RegisterBrokerRecord, before: BrokerRegistration) -> RegisterBrokerRecord:
    """Return the record of a registered process: it keeps its epoch and its flags."""
    return msgspec.structs.replace(
        record,
        broker_epoch=before.broker_epoch,
        fenced=before.fenced,
        in_controlled_shutdown=before.in_controlled_shutdown,
    )


def _with_epoch(
    record: RegisterBrokerRecord, leaving: list[Record], offset: int
) -> ControllerResult:
    """Give a new process its broker epoch: the offset of its own record."""
    own = msgspec.structs.replace(record, broker_epoch=offset + len(leaving))
    return ControllerResult(
        (*leaving, own),
        reason="registration",
        rebase=lambda moved_to: _with_epoch(record, leaving, moved_to),
    )
