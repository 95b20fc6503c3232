"""A controller: builds the parts of each room and passes events between them.

No decision is made here. The quorum reports committed entries and leadership, and the clock's
timers and HTTP requests come in. Each event goes to the rooms it concerns, always in the same
order. There is no async code and no thread: everything happens within these calls.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_bytes
from typing import Any, Protocol

from structlog.typing import FilteringBoundLogger

from controller.access.asker_rights import AskerRights
from controller.access.route_access import RouteAccess
from controller.config import ControllerConfig
from controller.erasure.messages import SUBJECT_KEYS
from controller.erasure.parts import subject_keys
from controller.http.node_view import NodeCondition, NodeView
from controller.http.parts import HttpParts
from controller.http.routes import find_route
from controller.leader.parts import LeaderParts
from controller.leader.self_registration import ANNOUNCEMENT
from controller.people.parts import people_door
from controller.policies import NO_POLICIES, Policies
from controller.replica.parts import ReplicaParts
from controller.signing.messages import HEADS, KEYS
from controller.signing.parts import head_signing, head_witnessing
from controller.signing.witnessing import HeadWitness
from controller.storage.damage import STATE
from controller.storage.parts import StorageParts
from controller.trail.parts import AttemptTrail
from ledger.archive_place import Archive
from ledger.batch import Batch
from ledger.ledger import Ledger
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.messages import HealthReply
from quorum.api import LeaderAndEpoch, Mark, Quorum, QuorumListener
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.http.requests import Reply, Request
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.sockets.attempts import Attempt
from runtime.tracing import Tracing
from snapshots.store import CheckpointStore

TOLD = b"\x03"
"""The first byte of what followers tell each other.

A digest begins with 1, an announcement with 2, what is said about signed heads and their keys with
4 and 5, about keys of subjects with 7, a report of attempts with 10."""


class QuorumFactory(Protocol):
    """Makes the quorum, which will report to `listener`."""

    def __call__(self, listener: QuorumListener) -> Quorum:
        """Make it. `Controller.start` starts it."""


class ControllerFollower(Protocol):
    """Gets events of a controller, on the loop, after its own parts. No method may raise."""

    def on_loaded(self, ledger: Ledger, image: MetadataImage) -> None:
        """An image was loaded, at a start or after a catch-up. What comes is applied to it."""

    def on_progress(self) -> None:
        """More is committed and applied."""

    def on_leader(self) -> None:
        """The leader or the epoch has changed, or this controller's part in it."""

    def on_told(self, node_id: int, data: bytes) -> None:
        """A voter's follower told this with `Controller.tell_peers`."""

    def on_stop(self) -> None:
        """The controller stops for good. Its files are closed next."""


class Controller:
    """One controller of a cluster; active or standby as the quorum decides."""

    def __init__(
        self,
        config: ControllerConfig,
        *,
        clock: Clock,
        random: Random,
        disk: Disk,
        quorum_factory: QuorumFactory,
        log: FilteringBoundLogger,
        version: str = "",
        registry: Registry | None = None,
        on_stopped: Callable[[str], None] | None = None,
        on_settled: Callable[[], None] = lambda: None,
        on_defect: Callable[[BaseException], None] = lambda _error: None,
        policies: Policies = NO_POLICIES,
        archive: Archive | None = None,
        tracing: Tracing | None = None,
        witnesses: Sequence[HeadWitness] = (),
        draw_secret: Callable[[int], bytes] = token_bytes,
    ) -> None:
        """Build everything. Nothing happens before `start`.

        `registry` may hold other metrics of the process too. `on_stopped` is called once, with a
        sentence, if the node can't go on. `on_settled` is called when an image was loaded or a
        checkpoint was written: most of what is in memory then stays there. `on_defect` gets the
        exception of a decision that failed. The node goes on, but a test should not. `policies` may
        refuse topics and configs. Old segments of the ledger move to `archive`. Changes are traced
        by `tracing`. Signed heads are shown to `witnesses`. `draw_secret` returns so many random
        bytes of the system; only tests give another one.
        """
        self._log = log = log.bind(node_id=config.node_id)
        self._on_stopped = on_stopped
        self._followers: list[ControllerFollower] = []
        self._condition = NodeCondition(clock.monotonic())
        self.quorum = quorum_factory(self)
        self._replica = ReplicaParts(
            config,
            clock,
            self.quorum,
            on_batch=self._on_batch,
            on_progress=self._on_progress,
            on_own_skipped=lambda reason: self.quorum.resign(
                f"our own batch was skipped: {reason}"
            ),
            on_failed=self._fail,
            log=log,
        )
        self._storage = StorageParts(
            config,
            clock,
            disk,
            self.quorum,
            self._replica.applier,
            on_loaded=self._loaded,
            on_failed=self._fail,
            on_settled=on_settled,
            archive=archive,
            log=log,
        )
        self._leader = LeaderParts(
            config, clock, random, self.quorum, self._replica, on_defect, log, policies
        )
        self._view = NodeView(
            config,
            clock,
            version,
            self._condition,
            self.quorum,
            self._replica,
            self._leader,
            self._storage,
        )
        self._signing = head_signing(
            config,
            clock,
            disk,
            self.quorum,
            self._storage,
            self._leader.proposer,
            lambda: self._replica.image,
            self._view.voters,
            self._on_contradicted,
            log,
        )
        self._view.signing = self._signing
        self._view.witnessing = self._witnessing = head_witnessing(
            config, clock, disk, self._storage, self._signing, witnesses, log
        )
        self._view.subject_keys = self._subject_keys = subject_keys(
            config,
            clock,
            disk,
            self.quorum,
            self._replica,
            self._leader,
            draw_secret,
            self._subject_keys_usable,
            self._fail,
            log,
        )
        self._people = people_door(config, clock, self._replica, self._leader, draw_secret)
        # Copies, so that what is held and what is reported draw no dice of placement.
        holds, lives = Random(), Random()
        holds.setstate(random.getstate())
        lives.setstate(random.getstate())
        registry = registry or Registry()
        self.trail = AttemptTrail(
            config,
            clock,
            lives.randbytes(16),
            self.quorum,
            self._leader.proposer,
            lambda: self._replica.image,
            self._leader.address_sealer,
            self._people.attempt,
        )
        self.trail.show(registry)
        self._http = HttpParts(
            config,
            clock,
            holds,
            self._view,
            self.quorum,
            registry,
            log,
            tracing,
            self.trail,
            self._people,
        )

    # -- start, requests, stop ----------------------------------------------------------------

    def start(self) -> None:
        """Open the folder, join the quorum and load the image. Requests may come at once.

        Raises what `Quorum.start` and `Ledger.open` raise.
        """
        self._leader.awake.start()
        mark = self.quorum.start()
        if self._subject_keys is not None:
            self._subject_keys.start()
        self._storage.open(mark)

    def stop(self) -> None:
        """Give up leadership, sync the files, and close them."""
        if self._condition.stopped:
            return
        self._condition.stopped = "it is stopping"
        self._end()
        self.quorum.stop()
        self._storage.files.close()

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        """Answer an HTTP request, exactly once, now or later."""
        self._leader.awake.notice()
        self._http.api.handle(request, reply)

    def access_refusal(
        self, name: str, access: RouteAccess | None, request: Request, message: Any
    ) -> LogbergError | None:
        """Judge a request that asks no route; see `controller.http.access_checks`."""
        return self._http.access_checks.refusal(name, access, request, message)

    def note_attempt(self, attempt: Attempt) -> None:
        """Count an attempt that was refused before it became a request of this controller."""
        if not attempt.operation:
            method, _, path = attempt.request.partition(" ")
            route = find_route(method, path).route
            attempt = attempt._replace(operation="unknown" if route is None else route.name)
        self.trail.note(attempt)

    def asker_rights(self, request: Request) -> AskerRights | None:
        """Return what the asker of a request may do, by the committed image; None: everything."""
        return self._http.access_checks.rights(request)

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._replica.image

    @property
    def ledger(self) -> Ledger | None:
        """The ledger; None until it is open."""
        return self._storage.files.ledger

    @property
    def active(self) -> bool:
        """This controller leads, and the begin of its epoch is committed."""
        return self._leader.duties.active

    @property
    def loaded(self) -> bool:
        """Whether the log was loaded, or the node has caught up, so that the image can be read."""
        return self._storage.files.ready

    def health(self) -> HealthReply:
        """Return whether this controller can answer, and why not."""
        return self._view.ready()

    @property
    def checkpoints(self) -> CheckpointStore | None:
        """The checkpoints here; None until the folder is open."""
        return self._storage.files.store

    @property
    def newest_checkpoint(self) -> int:
        """The offset of the newest checkpoint; -1: there is none."""
        offer = self._storage.snapshotting.offer
        return -1 if offer is None else offer.offset

    @property
    def place(self) -> Mark:
        """The last entry of the quorum's that is applied as a whole."""
        return self._replica.applier.place

    def follow(self, follower: ControllerFollower) -> None:
        """Send this controller's events to a follower, too. Call it before `start`."""
        self._followers.append(follower)

    def tell_peers(self, data: bytes) -> None:
        """Send these bytes once to the followers of the other controllers; at most 511."""
        self.quorum.tell(TOLD + data)

    @property
    def voters(self) -> tuple[int, ...]:
        """The ids of the controllers that vote."""
        return self._view.voters()

    @property
    def signed_head(self) -> str:
        """The newest head that a majority signed, as a C2SP checkpoint; empty: there is none."""
        signing = self._signing
        if signing is None or signing.contradiction or signing.newest is None:
            return ""
        return signing.newest.note

    @property
    def awaits_subject_keys(self) -> bool:
        """Values of subjects can't be opened yet; `on_progress` follows when they can."""
        return self._subject_keys is not None and self._subject_keys.awaited

    def write_checkpoint(self) -> bool:
        """Begin to write a checkpoint; False if none can be written now."""
        return self._storage.snapshotting.write()

    def _loaded(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        for follower in self._followers:
            follower.on_loaded(ledger, image)
        if self._signing is not None:
            self._signing.on_loaded()
        self._replica.begin(ledger, image, place)
        if self._subject_keys is not None:
            self._subject_keys.on_loaded()

    def _end(self) -> None:
        for follower in self._followers:
            follower.on_stop()
        self._leader.duties.end()
        if self._signing is not None:
            self._signing.end()
        if self._witnessing is not None:
            self._witnessing.stop()
        if self._subject_keys is not None:
            self._subject_keys.stop()
        self._http.fetch.on_lost()
        self._http.watching.wake()
        self._http.coordination.stop()
        if self._http.sender is not None:
            self._http.sender.end()
        self.trail.reporting.stop()
        self._leader.awake.stop()
        self._http.pages.stop()
        self._replica.applier.stop()
        self._storage.stop()

    def _fail(self, reason: str) -> None:
        """Stop for good: the node can't go on."""
        if self._condition.stopped:
            return
        self._condition.stopped = reason
        self._log.critical("controller_stopped", reason=reason)
        self._end()
        # The broken disk may refuse the last sync too. The process ends in any case.
        with suppress(OSError):
            self.quorum.stop()
            self._storage.files.close()
        if self._on_stopped is not None:
            self._on_stopped(reason)

    # -- events of the quorum (QuorumListener) ------------------------------------------------

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        self._replica.applier.on_committed(index, epoch, payloads)

    def on_leadership(self, epoch: int) -> None:
        if self._condition.stopped or self._condition.diverged:
            self.quorum.resign(self._condition.stopped or self._condition.diverged)
            return
        self._leader.duties.begin(epoch, lambda: self._storage.files.ledger)
        if self._signing is not None:
            self._signing.begin()
        if self._subject_keys is not None:
            self._subject_keys.begin()
        self._tell_leader()

    def on_leadership_lost(self, epoch: int) -> None:
        self._leader.duties.end()
        if self._signing is not None:
            self._signing.end()
        self._http.fetch.on_lost()
        self._tell_leader()

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        self._log.info("leader_changed", leader=now.leader, epoch=now.epoch)
        self._storage.snapshotting.leader_changed()
        if self._http.sender is not None:
            self._http.sender.on_leader()
        self.trail.reporting.on_leader()
        self._tell_leader()

    def on_catch_up(self, mark: Mark, source: int) -> None:
        if not self._condition.stopped:
            self._storage.files.catch_up(mark, source)

    def on_catch_up_dropped(self) -> None:
        self._storage.files.drop_catch_up()

    def on_caught_up(self, mark: Mark) -> None:
        self._storage.caught_up(mark)

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None:
        if digest[:1] == ANNOUNCEMENT:
            self._leader.self_registration.on_announcement(node_id, digest)
        elif self.trail.take_report(node_id, digest):
            return
        elif digest[:1] == TOLD:
            if voter and not self._condition.stopped:
                for follower in self._followers:
                    follower.on_told(node_id, digest[1:])
            return
        elif digest[:1] in (HEADS, KEYS):
            if voter and self._signing is not None and not self._condition.stopped:
                self._signing.on_told(node_id, digest)
            return
        elif digest[:1] == SUBJECT_KEYS:
            if voter and self._subject_keys is not None and not self._condition.stopped:
                self._subject_keys.on_told(node_id, digest)
            return
        elif voter:
            # A voter does not compare its state with observers.
            self._replica.digests.on_digest(node_id, digest)
        self._view.note_current()
        self._judge()

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        if not self._condition.stopped and not self.trail.take_report(node_id, contacts):
            # As for a request: what has come during a stall waits for the leadership check.
            self._leader.awake.notice()
            self._http.taker.take(node_id, contacts)

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        if self._http.sender is not None and not self._condition.stopped:
            self._http.sender.on_confirmed(confirmed)

    def on_stopped(self, reason: str) -> None:
        self._fail(reason)

    # -- events of the applier ----------------------------------------------------------------

    def _on_batch(self, batch: Batch) -> None:
        self._storage.snapshotting.accepted(batch.header.end_offset, len(batch.encoded))
        self._replica.note_state(batch)
        if self._storage.tree is not None:
            self._storage.tree.on_batch(batch)
        self._http.coordination.on_batch(batch)

    def _on_progress(self) -> None:
        if self._condition.stopped:
            return
        offset = self._replica.image.offset
        self._leader.proposer.committed(offset)
        self._replica.waiters.reached(offset)
        self.quorum.set_digest(self._replica.marks.encode())
        self._judge()
        self._http.fetch.on_progress()
        self._leader.self_registration.look()
        self._leader.voters_projection.look()
        self._leader.key_check.look()
        self._leader.token_expiry.look()
        self.trail.reporting.on_progress()
        self._http.watching.wake()
        self._http.coordination.on_progress()
        self._storage.snapshotting.consider()
        if self._signing is not None:
            self._signing.on_progress()
        for follower in self._followers:
            follower.on_progress()
        if self._subject_keys is not None:
            # Behind the followers: what they show of a subject has ended before its key is gone.
            self._subject_keys.look()
        self._people.look()

    def _subject_keys_usable(self) -> None:
        self._people.look()
        for follower in self._followers:
            follower.on_progress()

    def _tell_leader(self) -> None:
        for follower in self._followers:
            follower.on_leader()

    def _on_contradicted(self, why: str) -> None:
        """Our log is not the one whose head we signed: serve nothing of it, and lead nobody."""
        self._condition.diverged = why
        self.quorum.resign(why)

    def _judge(self) -> None:
        """Compare our state with the other controllers'. If ours is wrong, stop serving it."""
        digests = self._replica.digests
        if self._signing is not None and self._signing.contradiction:
            return  # it is refused already, for a reason that no digest takes back
        verdict = digests.verdict(self._view.voters())
        if verdict == self._condition.diverged:
            return
        if verdict and not self._condition.diverged:
            self._storage.damage.found(STATE, verdict)
        self._condition.diverged = verdict
        if verdict:
            self._log.critical("state_diverged", reason=verdict)
            if digests.wrong:
                self._storage.snapshotting.distrust(digests.agreed_at)
            if self._leader.proposer.pending is not None:
                self.quorum.resign(verdict)
        else:
            self._log.warning("state_agrees_again")
