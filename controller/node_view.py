"""A controller as its API and its metrics see it.

Rule: looks and answers; changes nothing but its own counters.
"""

from collections.abc import Iterator, Sequence

import msgspec

from controller.config import ControllerConfig
from controller.http.degraded import Ask, DegradedMode, refusal
from controller.http.held_requests import HeldRequests
from controller.http.metrics import ControllerMetrics
from controller.http.queries import View
from controller.http.status import quorum_reply, readiness, status_reply
from controller.leader.heartbeats import AwakeTime, Heartbeats
from controller.leader.leader_duties import LeaderDuties
from controller.leader.mutation_quota import MutationQuota
from controller.leader.proposer import Proposer
from controller.replica.applier import Applier
from controller.replica.freshness import ImageFreshness
from controller.storage.damage import DamageRecord
from controller.storage.opening import Storage
from controller.storage.scrubbing import Scrubbing
from controller.storage.snapshotting import Snapshotting
from ledger.ledger import Ledger
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import HealthReply
from quorum.api import LeaderAndEpoch, Quorum
from runtime.clock import Clock
from runtime.metrics import Registry


class NodeCondition:
    """How the node is; the trunk keeps it."""

    def __init__(self, now: float) -> None:
        self.started_at = now
        self.freshness = ImageFreshness()
        self.stopped = ""
        """Why it can't go on; empty: it goes on."""
        self.diverged = ""
        """Why its state must not be served; empty: it agrees with the others."""


class NodeView:
    """Implements `api.Node` and `metrics.Figures`."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        version: str,
        condition: NodeCondition,
        quorum: Quorum,
        *,
        applier: Applier,
        proposer: Proposer,
        quota: MutationQuota,
        leader_duties: LeaderDuties,
        heartbeats: Heartbeats,
        awake: AwakeTime,
        storage: Storage,
        snapshotting: Snapshotting,
        damage: DamageRecord,
        scrubbing: Scrubbing,
        held: Sequence[HeldRequests],
        registry: Registry,
    ) -> None:
        self.version = version
        self._config = config
        self._clock = clock
        self._condition = condition
        self._quorum = quorum
        self._applier = applier
        self._proposer = proposer
        self._leader_duties = leader_duties
        self._heartbeats = heartbeats
        self._awake = awake
        self._storage = storage
        self._snapshotting = snapshotting
        self._held = held
        self.quota = quota
        self.damage = damage
        self.scrubbing = scrubbing
        self._metrics = ControllerMetrics(registry, self)

    # -- who answers ----------------------------------------------------------------------

    def refusal(self, ask: Ask) -> LogbergError | None:
        for mode, why in self._modes():
            refused = refusal(mode, ask, why)
            if refused is not None:
                return refused
        return None

    def _modes(self) -> Iterator[tuple[DegradedMode, str]]:
        """The modes that we know to be in, the worst first, and why."""
        condition = self._condition
        if condition.stopped:
            yield DegradedMode.STOPPED, f"this controller stopped: {condition.stopped}"
        if condition.diverged:
            yield DegradedMode.DIVERGED, condition.diverged
        if self._applier.disk_full and self._leader_duties.elected:
            # A standby sends to the leader whoever needs one, and grows old meanwhile.
            yield DegradedMode.LEDGER_FULL, self._applier.disk_full
        if not self._storage.ready:
            yield DegradedMode.LOADING, "this controller is loading its log; ask another"
        if self._proposer.overloaded:
            yield DegradedMode.OVERLOADED, "too many requests wait for their turn; retry later"

    def not_here(self) -> LogbergError:
        stopped = self._condition.stopped
        if stopped:
            return LogbergError(ErrorCode.SHUTTING_DOWN, f"this controller stopped: {stopped}")
        leader, url = self.leadership()
        if leader.leader is None:
            return LogbergError(ErrorCode.NO_QUORUM)
        if leader.leader == self._config.node_id:
            return LogbergError(
                ErrorCode.NO_QUORUM, "this controller leads and can't confirm it: is it cut off?"
            )
        where = f" at {url}" if url else ""
        return LogbergError(
            ErrorCode.NOT_CONTROLLER, f"controller {leader.leader} leads{where}; ask there"
        )

    def leadership(self) -> tuple[LeaderAndEpoch, str | None]:
        now = self._quorum.leader_and_epoch()
        if now.leader == self._config.node_id and not self._leader_duties.elected:
            # Just deposed, or stopping: nobody should be sent back here.
            now = now._replace(leader=None)
        url = None if now.leader is None else self._config.controller_urls.get(now.leader)
        return now, url

    def read(self) -> View:
        """What a read is answered from."""
        self.note_current()
        image = self._applier.image
        age_ms = self._condition.freshness.age_ms(image, self._clock.monotonic())
        return View(image, self.heard, age_ms)

    def note_current(self) -> None:
        """Remember from when what was delivered by now is current."""
        moment = self._quorum.current_at()
        if moment is not None and self._storage.ready:
            # While the log is loaded, the applier doesn't know yet how much was delivered.
            image, delivered = self._applier.image, self._applier.delivered
            self._condition.freshness.told(delivered, image, moment)

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def voters(self) -> tuple[int, ...]:
        return tuple(voter.node_id for voter in self._quorum.voters())

    # -- how it is ------------------------------------------------------------------------

    def quorum_state(self) -> msgspec.Struct:
        return quorum_reply(
            self._config.cluster_id,
            self._quorum.status(),
            self._quorum.voters(),
            self._config.controller_urls,
            0 if self.ledger is None else self.ledger.log_end,
        )

    def status(self) -> msgspec.Struct:
        offer, condition = self._snapshotting.offer, self._condition
        return status_reply(
            cluster_id=self._config.cluster_id,
            version=self.version,
            status=self._quorum.status(),
            active=self.active,
            leader_url=self.leadership()[1],
            image=self.image,
            ledger=self.ledger,
            heard=self.heard,
            newest_snapshot=None if offer is None else offer.id,
            repairs=self.damage.sentences,
            scrubbed_ms=self.scrubbing.finished_ms,
            uptime_s=self._clock.monotonic() - condition.started_at,
            note=condition.stopped
            or condition.diverged
            or self._applier.disk_full
            or self._storage.note
            or self._unready(),
        )

    def _unready(self) -> str:
        ready = self.ready()
        return "" if ready.healthy else ready.reason

    def ready(self) -> HealthReply:
        return readiness(
            stopped=self._condition.stopped,
            diverged=self._condition.diverged,
            loaded=self._storage.ready,
            disk_full=self._applier.disk_full,
            status=self._quorum.status(),
            active=self.active,
            image=self.image,
        )

    def metrics_text(self) -> bytes:
        return self._metrics.render()

    def answered(self, operation: str, status: int, arrived: float) -> None:
        held = operation in ("metadata_fetch", "read_log")
        self._metrics.answered(operation, status, None if held else self.monotonic() - arrived)

    # -- figures --------------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        return self._applier.image

    @property
    def ledger(self) -> Ledger | None:
        return self._storage.ledger

    @property
    def active(self) -> bool:
        return self._leader_duties.active

    @property
    def heard(self) -> Heartbeats | None:
        return self._heartbeats if self._proposer.pending is not None else None

    @property
    def serving(self) -> bool:
        return all(mode is DegradedMode.OVERLOADED for mode, _ in self._modes())

    @property
    def held_requests(self) -> int:
        return sum(len(held_requests) for held_requests in self._held)

    @property
    def waiting_decisions(self) -> int:
        return self._proposer.waiting

    @property
    def pending_bytes(self) -> int:
        return 0 if self._proposer.pending is None else self._proposer.pending.bytes

    @property
    def stalled_s(self) -> float:
        return self._awake.stalled_s()

    @property
    def diverged(self) -> bool:
        return bool(self._condition.diverged)

    @property
    def snapshot_offset(self) -> int:
        return 0 if self._snapshotting.offer is None else self._snapshotting.offer.offset
