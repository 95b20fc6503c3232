"""What this controller says of itself: whom it serves, who leads, and how it is.

Nothing here changes the controller. The one exception is `note_current`, which remembers how fresh
the image is.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from controller.config import ControllerConfig
from controller.erasure.keeping import SubjectKeysKeeping
from controller.http.controller_urls import url_of, urls_of
from controller.http.degraded import (
    DIVERGED,
    LEDGER_FULL,
    LOADING,
    OVERLOADED,
    STOPPED,
    Ask,
    KnownMode,
)
from controller.http.status import quorum_reply, readiness, status_reply
from controller.leader.heartbeats import Heartbeats
from controller.leader.parts import LeaderParts
from controller.replica.parts import ReplicaParts
from controller.signing.signing import HeadSigning
from controller.signing.witnessing import Witnessing
from controller.storage.parts import StorageParts
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import HealthReply
from quorum.api import LeaderAndEpoch, Quorum
from runtime.clock import Clock

_NOTED_EVERY_S: Final = 0.001
"""Reads ask the quorum so often at most. Ages are told in ms, and one that is asked for more seldom
is only larger."""


class NodeCondition:
    """Why the node may have to refuse everything. The trunk sets it."""

    def __init__(self, now: float) -> None:
        """`now`: monotonic seconds."""
        self.started_at = now
        self.stopped = ""
        """Why the node stopped, or stops; empty while it runs."""
        self.diverged = ""
        """Why its state must not be served; empty while it agrees with the other controllers."""


class Leadership(NamedTuple):
    """Who leads, as far as this node knows."""

    leader: LeaderAndEpoch
    url: str | None
    """Where the leader answers HTTP; None if nobody is known to lead, or its URL isn't set."""


class View(NamedTuple):
    """What a read is answered from."""

    image: MetadataImage
    heard: Heartbeats | None
    """Which brokers were heard from; None on a standby, which doesn't know."""
    age_ms: int | None
    """How long ago `image` was surely current; None if that is not known."""


class NodeView:
    """Built once from the parts of the other rooms, and then only reads them."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        version: str,
        condition: NodeCondition,
        quorum: Quorum,
        replica: ReplicaParts,
        leader: LeaderParts,
        storage: StorageParts,
    ) -> None:
        """`version` is the release of the program, for status and the OpenAPI document."""
        self.version = version
        self.condition = condition
        self.replica = replica
        self.leader = leader
        self.storage = storage
        self.signing: HeadSigning | None = None
        """What signs heads; None if this controller has no key for it."""
        self.witnessing: Witnessing | None = None
        """What shows heads to witnesses; None if there are none."""
        self.subject_keys: SubjectKeysKeeping | None = None
        """What keeps the keys of subjects; None if this controller has no cluster key."""
        self._config = config
        self._clock = clock
        self._quorum = quorum
        self._noted_at = 0.0
        """Monotonic seconds at which a read last asked the quorum how fresh the image is."""

    # -- who answers ----------------------------------------------------------------------

    def refusal(self, ask: Ask) -> LogbergError | None:
        """Return why this node doesn't answer such a request now; None: it does."""
        for mode, why in self._modes():
            if ask in mode.refused:
                return LogbergError(mode.code, why)
        return None

    @property
    def serving(self) -> bool:
        """The node answers reads. It may still refuse changes because too many wait."""
        return all(mode is OVERLOADED for mode, _ in self._modes())

    def _modes(self) -> Iterator[tuple[KnownMode, str]]:
        """Yield each degraded mode that the node knows to be in, the worst first, and why."""
        condition, applier = self.condition, self.replica.applier
        if condition.stopped:
            yield STOPPED, f"this controller stopped: {condition.stopped}"
        if condition.diverged:
            yield DIVERGED, condition.diverged
        if applier.disk_full and self.leader.duties.elected:
            # A standby is not in this mode: it redirects to the leader what needs a fresh image.
            yield LEDGER_FULL, applier.disk_full
        if not self.storage.files.ready:
            yield LOADING, "this controller is loading its log; ask another"
        if self.leader.proposer.overloaded:
            yield OVERLOADED, "too many requests wait for their turn; retry later"

    def not_here(self) -> LogbergError:
        """Return the error of a request that only a leader can answer. It says whom to ask."""
        stopped = self.condition.stopped
        if stopped:
            return LogbergError(ErrorCode.SHUTTING_DOWN, f"this controller stopped: {stopped}")
        leader, url = self.leadership()
        if leader.leader is None:
            return LogbergError(ErrorCode.NO_QUORUM)
        if leader.leader == self._config.node_id:
            return LogbergError(
                ErrorCode.NO_QUORUM,
                self.leader.first_levels.waits_for
                or "this controller leads and can't confirm it: is it cut off?",
            )
        where = f" at {url}" if url else ""
        return LogbergError(
            ErrorCode.NOT_CONTROLLER, f"controller {leader.leader} leads{where}; ask there"
        )

    def with_leader(self, error: LogbergError) -> LogbergError:
        """Return an error that says whom to ask, if it says that this controller doesn't lead."""
        return self.not_here() if error.code is ErrorCode.NOT_CONTROLLER else error

    def leadership(self) -> Leadership:
        """Return who leads."""
        now = self._quorum.leader_and_epoch()
        if now.leader == self._config.node_id and not self.leader.duties.elected:
            # This node was just deposed, or is stopping: don't send anybody back to it.
            now = now._replace(leader=None)
        if now.leader is None:
            return Leadership(now, None)
        urls, moved = self._config.controller_urls, self._quorum.voter_set().moved
        return Leadership(now, url_of(urls, self.replica.image, now.leader, moved))

    def voters(self) -> tuple[int, ...]:
        """Return the node ids of the voters."""
        return tuple(voter.node_id for voter in self._quorum.voters())

    def read(self) -> View:
        """Return what a read is answered from."""
        now = self._clock.monotonic()
        if now >= self._noted_at + _NOTED_EVERY_S:
            self._noted_at = now
            self.note_current()
        image = self.replica.image
        age_ms = self.replica.freshness.age_ms(image, now)
        return View(image, self.leader.heard, age_ms)

    def read_now(self) -> View:
        """Return what a read is answered from, once a majority has confirmed the image as new."""
        return View(self.replica.image, self.leader.heard, 0)

    def note_current(self) -> None:
        """Remember the moment for which the quorum knows that nothing is missing here."""
        moment = self._quorum.current_at()
        if moment is not None and self.storage.files.ready:
            # While the log is loaded, the applier doesn't know yet how much was delivered.
            image, delivered = self.replica.image, self.replica.applier.delivered
            self.replica.freshness.told(delivered, image, moment)

    # -- how it is ------------------------------------------------------------------------

    def quorum_state(self) -> msgspec.Struct:
        """Return the answer of `GET /v1/quorum`."""
        ledger = self.storage.files.ledger
        status, voters = self._quorum.status(), self._quorum.voter_set()
        members = {voter.node_id for voter in voters.voters}
        members |= {replica.node_id for replica in status.replicas}
        return quorum_reply(
            self._config.cluster_id,
            status,
            voters,
            urls_of(self._config.controller_urls, self.replica.image, members, voters.moved),
            0 if ledger is None else ledger.log_end,
            self._config.standing_observers,
        )

    def status(self) -> msgspec.Struct:
        """Return the answer of `GET /v1/status`."""
        offer, condition = self.storage.snapshotting.offer, self.condition
        return status_reply(
            cluster_id=self._config.cluster_id,
            version=self.version,
            status=self._quorum.status(),
            active=self.leader.duties.active,
            leader_url=self.leadership().url,
            image=self.replica.image,
            ledger=self.storage.files.ledger,
            heard=self.leader.heard,
            newest_snapshot=None if offer is None else offer.id,
            repairs=self.storage.damage.sentences,
            scrubbed_ms=self.storage.scrubbing.finished_ms,
            uptime_s=self._clock.monotonic() - condition.started_at,
            note=condition.stopped
            or condition.diverged
            or self.replica.applier.disk_full
            or self.storage.files.note
            or self._unready()
            or self.leader.key_check.problem,
            history_from=self.storage.history_from,
            requests=self.leader.changes.under_way(),
            authorization=self._config.authorization,
            bootstrap_admin=self._config.bootstrap_admin,
        )

    def _unready(self) -> str:
        ready = self.ready()
        return "" if ready.healthy else ready.reason

    def ready(self) -> HealthReply:
        """Return the answer of `GET /health/ready`."""
        return readiness(
            stopped=self.condition.stopped,
            diverged=self.condition.diverged,
            loaded=self.storage.files.ready,
            disk_full=self.replica.applier.disk_full,
            status=self._quorum.status(),
            active=self.leader.duties.active,
            waits_for=self.leader.first_levels.waits_for,
            image=self.replica.image,
        )
