"""A controller: passes events between the parts of its rooms (`controller.parts`).

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
from controller.following import TOLD, ControllerFollower, Followers
from controller.http.node_view import NodeCondition
from controller.http.routes import find_route
from controller.leader.self_registration import ANNOUNCEMENT
from controller.parts import ControllerParts, PartEvents
from controller.policies import NO_POLICIES, Policies
from controller.signing.messages import HEADS, KEYS
from controller.signing.witnessing import HeadWitness
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


class QuorumFactory(Protocol):
    """Makes the quorum, which will report to `listener`."""

    def __call__(self, listener: QuorumListener) -> Quorum:
        """Make it. `Controller.start` starts it."""


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
        self._followers = Followers()
        self._condition = NodeCondition(clock.monotonic())
        self.quorum = quorum_factory(self)
        parts = ControllerParts(
            config,
            clock=clock,
            random=random,
            disk=disk,
            quorum=self.quorum,
            condition=self._condition,
            events=PartEvents(
                self._loaded,
                self._on_batch,
                self._on_progress,
                self._on_keys_usable,
                self._fail,
            ),
            log=log,
            version=version,
            registry=registry or Registry(),
            on_settled=on_settled,
            on_defect=on_defect,
            policies=policies,
            archive=archive,
            tracing=tracing,
            witnesses=witnesses,
            draw_secret=draw_secret,
        )
        self._replica = parts.replica
        self._storage = parts.storage
        self._leader = parts.leader
        self._view = parts.view
        self._state_judge = parts.state_judge
        self._signing = parts.signing
        self._witnessing = parts.witnessing
        self._subject_keys = parts.subject_keys
        self._people = parts.people
        self.trail = parts.trail
        self._http = parts.http

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
        self._followers.add(follower)

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
        self._followers.on_loaded(ledger, image)
        if self._signing is not None:
            self._signing.on_loaded()
        self._replica.begin(ledger, image, place)
        if self._subject_keys is not None:
            self._subject_keys.on_loaded()

    def _end(self) -> None:
        self._followers.on_stop()
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
        self._followers.on_leader()

    def on_leadership_lost(self, epoch: int) -> None:
        self._leader.duties.end()
        if self._signing is not None:
            self._signing.end()
        self._http.fetch.on_lost()
        self._followers.on_leader()

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        self._log.info("leader_changed", leader=now.leader, epoch=now.epoch)
        self._storage.snapshotting.leader_changed()
        if self._http.sender is not None:
            self._http.sender.on_leader()
        self.trail.reporting.on_leader()
        self._followers.on_leader()

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
                self._followers.on_told(node_id, digest[1:])
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
        self._state_judge.judge()

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
        self._state_judge.judge()
        self._http.fetch.on_progress()
        self._leader.self_registration.look()
        self._leader.voters_projection.look()
        self._leader.key_check.look()
        self._leader.token_expiry.look()
        if self._leader.address_sealer is not None:
            self._leader.address_sealer.look(self._replica.image)
        self.trail.reporting.on_progress()
        self._http.watching.wake()
        self._http.coordination.on_progress()
        self._storage.snapshotting.consider()
        if self._signing is not None:
            self._signing.on_progress()
        self._followers.on_progress()
        if self._subject_keys is not None:
            # Behind the followers: what they show of a subject has ended before its key is gone.
            self._subject_keys.look()
        self._people.look()

    def _on_keys_usable(self) -> None:
        self._people.look()
        self._followers.on_progress()
