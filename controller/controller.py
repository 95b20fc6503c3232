"""A controller: the trunk that wires its parts together.

Rule: no rule lives here. Requests go to `api`, decisions to `proposer`, what is committed to
`applier`; this file says who hears of what. No async and no thread: everything happens in the
calls of the clock, of the quorum and of `handle`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.http.api import Api
from controller.http.fetch_content import FetchContent
from controller.http.held_requests import HeldRequests
from controller.http.metadata_fetch import Leadership, MetadataFetch
from controller.http.pages import Pages
from controller.http.queries import Queries
from controller.http.snapshot_ranges import SnapshotRanges
from controller.http.watch import Watch
from controller.leader.changes import Changes
from controller.leader.fencing import Fencing
from controller.leader.heartbeats import AwakeTime, Heartbeats
from controller.leader.leader_duties import LeaderDuties, provenance_of_node
from controller.leader.leadership_check import LeadershipCheck
from controller.leader.leftover_elections import LeftoverElections
from controller.leader.mutation_quota import MutationQuota
from controller.leader.proposer import Proposer
from controller.leader.self_registration import ANNOUNCEMENT, SelfRegistration, registration_of
from controller.managers.brokers import BrokerManager
from controller.managers.topics import TopicManager
from controller.node_view import NodeCondition, NodeView
from controller.replica.applier import Applier
from controller.replica.digests import DigestComparison, StateMark, StateMarks
from controller.replica.offset_waiters import OffsetWaiters
from controller.replica.reads import ImageReads
from controller.storage.damage import STATE, DamageRecord
from controller.storage.opening import Storage
from controller.storage.scrubbing import Scrubbing
from controller.storage.snapshotting import Snapshotting
from ledger.batch import Batch
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from metadata.records import Record
from quorum.api import LeaderAndEpoch, Mark, Quorum, QuorumListener
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.requests import Reply, Request


class QuorumFactory(Protocol):
    """Makes the quorum below, which reports to `listener`."""

    def __call__(self, listener: QuorumListener) -> Quorum:
        """Make it; it is started by `Controller.start`."""


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
    ) -> None:
        """Wire everything; nothing happens before `start`.

        `registry` may hold the process's other metrics too. `on_stopped` is called once, with a
        sentence, if the node can't go on; `on_settled` when an image was loaded or a checkpoint
        written: much of what is in memory now stays there. `on_defect` hears of the exception of a
        decision that failed: the node goes on, a test should not.
        """
        self._config = config
        self._clock = clock
        self._log = log.bind(node_id=config.node_id)
        self._on_stopped = on_stopped
        self._condition = NodeCondition(clock.monotonic())
        self.quorum = quorum_factory(self)
        self._awake = AwakeTime(clock, config.beat_s, self._on_stall)
        self._heartbeats = Heartbeats(self._awake, config.session_s, 2 * config.heartbeat_s)
        self._marks = StateMarks()
        self._digests = DigestComparison(config.node_id, self._marks)
        self._damage = DamageRecord(clock)
        self._waiters = OffsetWaiters(clock)
        self._held_requests = HeldRequests(clock, config.parked_requests_max)
        self._watching = HeldRequests(clock, config.parked_requests_max)
        self._leadership_check = LeadershipCheck(self.quorum.read_index)
        self._applier = Applier(
            clock,
            on_batch=self._on_batch,
            on_progress=self._on_progress,
            on_own_skipped=lambda reason: self._resign(f"our own batch was skipped: {reason}"),
            on_failed=self._fail,
            log=self._log,
        )
        self._pages = Pages(clock, self._applier.retirement.released)
        self._snapshotting = Snapshotting(
            config,
            clock,
            self._applier,
            self.quorum.compact,
            self._fail,
            on_settled,
            self._log,
        )
        self._storage = Storage(
            config,
            clock,
            disk,
            self.quorum,
            self._applier,
            self._loaded,
            self._fail,
            self._damage,
            self._snapshotting.lost,
            self._log,
        )
        self._scrubbing = Scrubbing(
            config, clock, disk, self.quorum.scrub, self._storage, self._log
        )
        self._wire(random, version, registry or Registry(), on_defect)

    def _wire(
        self,
        random: Random,
        version: str,
        registry: Registry,
        on_defect: Callable[[BaseException], None],
    ) -> None:
        """Make what decides and answers."""
        config, clock = self._config, self._clock
        brokers = BrokerManager(self._heartbeats)
        topics = TopicManager(config, random)
        self._quota = MutationQuota(
            clock, config.partition_mutations_per_s, config.partition_mutations_burst
        )
        self._proposer = Proposer(
            clock,
            self.quorum.propose,
            self._follow,
            self._resign,
            waiting_max=config.waiting_decisions_max,
            lag_warn_ms=config.clock_lag_warn_ms,
            log=self._log,
            on_defect=on_defect,
        )
        self._fencing = Fencing(
            clock,
            self._heartbeats,
            brokers,
            self._proposer,
            provenance_of_node(config.node_id),
            self._log,
        )
        self._leftover_elections = LeftoverElections(
            clock, brokers, self._proposer, provenance_of_node(config.node_id)
        )
        self._self_registration = SelfRegistration(
            registration_of(config, random.randbytes(16)),
            clock,
            self._proposer,
            self.quorum.announce,
            self.quorum.voters,
            lambda: self._applier.image,
            lambda node_id, operation: provenance_of_node(node_id)(operation),
            self._log,
        )
        self._leader_duties = LeaderDuties(
            config.node_id,
            self._applier,
            self._proposer,
            self._heartbeats,
            self._fencing,
            self._leftover_elections,
            self._self_registration,
            self.quorum.voters,
            self._log,
        )
        self._view = NodeView(
            config,
            clock,
            version,
            self._condition,
            self.quorum,
            applier=self._applier,
            proposer=self._proposer,
            quota=self._quota,
            leader_duties=self._leader_duties,
            heartbeats=self._heartbeats,
            awake=self._awake,
            storage=self._storage,
            snapshotting=self._snapshotting,
            damage=self._damage,
            scrubbing=self._scrubbing,
            held=(self._held_requests, self._watching),
            registry=registry,
        )
        self._fetch = MetadataFetch(
            config,
            brokers,
            self._heartbeats,
            self._proposer,
            self._leftover_elections,
            FetchContent(
                config,
                self._ledger,
                self._marks,
                lambda: self._snapshotting.offer,
                self._storage.damaged,
            ),
            self._held_requests,
            self._leadership_check,
            provenance_of_node(config.node_id),
            lambda: self._applier.image,
            lambda: Leadership(*self._view.leadership()),
        )
        reads = ImageReads(
            clock,
            self.quorum.read_index,
            lambda: self._applier.delivered,
            self._waiters,
            config.read_wait_s,
        )
        self._api = Api(
            self._view,
            self._fetch,
            Changes(config, clock, random, self._proposer, self._quota, reads.linearizable),
            Queries(reads, self._view.read, self._view.not_here, self._pages),
            Watch(self._ledger, lambda: self._applier.image, self._watching, self._storage.damaged),
            SnapshotRanges(lambda: self._storage.store, self._fetch.note_piece),
            brokers,
            topics,
            config.newest_version,
        )

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the folder, join the quorum, load the image; requests may come at once.

        Raises what `Quorum.start` and `Ledger.open` raise.
        """
        self._awake.start()
        self._storage.open(self.quorum.start())

    def stop(self) -> None:
        """Stop in order: give up leadership, sync, close."""
        if self._condition.stopped:
            return
        self._condition.stopped = "it is stopping"
        self._end()
        self.quorum.stop()
        self._storage.close()

    def handle(self, request: Request, reply: Callable[[Reply], None]) -> None:
        """Answer an HTTP request, exactly once, now or later."""
        self._awake.notice()
        self._api.handle(request, reply)

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._applier.image

    @property
    def ledger(self) -> Ledger | None:
        """The ledger; None until it is open."""
        return self._storage.ledger

    @property
    def active(self) -> bool:
        """It leads and has begun its epoch."""
        return self._leader_duties.active

    def write_checkpoint(self) -> bool:
        """Write a checkpoint now; False when it can't be now."""
        return self._snapshotting.write()

    def _end(self) -> None:
        self._leader_duties.end()
        self._fetch.on_lost()
        self._watching.wake()
        self._awake.stop()
        self._pages.stop()
        self._applier.stop()
        self._snapshotting.stop()
        self._scrubbing.stop()

    def _fail(self, reason: str) -> None:
        """The node can't go on."""
        if self._condition.stopped:
            return
        self._condition.stopped = reason
        self._log.critical("controller_stopped", reason=reason)
        self._end()
        # The disk that made us stop may refuse the last sync too: the process ends all the same.
        with suppress(OSError):
            self.quorum.stop()
            self._storage.close()
        if self._on_stopped is not None:
            self._on_stopped(reason)

    def _ledger(self) -> Ledger:
        ledger = self._storage.ledger
        assert ledger is not None, "requests are refused before the ledger is open"
        return ledger

    def _loaded(self, ledger: Ledger, image: MetadataImage, place: Mark) -> None:
        """Ledger and image are here, at start or after a catch-up: go on from there."""
        self._marks.restart(image.offset)
        assert self._storage.store is not None
        self._snapshotting.begin(ledger, self._storage.store)
        self._scrubbing.begin(ledger, self._storage.store)
        self._applier.begin(ledger, image, place)

    # -- what the quorum says -----------------------------------------------------------------

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        self._applier.on_committed(index, epoch, payloads)

    def on_leadership(self, epoch: int) -> None:
        if self._condition.stopped or self._condition.diverged:
            self.quorum.resign(self._condition.stopped or self._condition.diverged)
            return
        self._leader_duties.begin(epoch, lambda: self._storage.ledger)

    def on_leadership_lost(self, epoch: int) -> None:
        self._leader_duties.end()
        self._fetch.on_lost()

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        self._log.info("leader_changed", leader=now.leader, epoch=now.epoch)

    def on_catch_up(self, mark: Mark, source: int) -> None:
        if not self._condition.stopped:
            self._storage.catch_up(mark, source)

    def on_catch_up_dropped(self) -> None:
        self._storage.drop_catch_up()

    def on_caught_up(self, mark: Mark) -> None:
        self._scrubbing.stop()
        self._storage.caught_up(mark)

    def on_digest(self, node_id: int, digest: bytes) -> None:
        if digest[:1] == ANNOUNCEMENT:
            self._self_registration.on_announcement(node_id, digest)
        else:
            self._digests.on_digest(node_id, digest)
        self._view.note_current()
        self._judge()

    def on_stopped(self, reason: str) -> None:
        self._fail(reason)

    # -- what our own parts say ---------------------------------------------------------------

    def _follow(self, records: Sequence[Record]) -> None:
        self._leader_duties.follow(records)

    def _resign(self, reason: str) -> None:
        self.quorum.resign(reason)

    def _on_stall(self, seconds: float) -> None:
        self._log.warning("loop_stalled", seconds=round(seconds, 3))
        self._heartbeats.after_stall()
        if self._leader_duties.elected:
            self._leadership_check.begin()

    def _on_batch(self, batch: Batch) -> None:
        self._snapshotting.accepted(len(batch.encoded))
        image = self._applier.image
        if image.offset != batch.header.end_offset:
            return  # Replayed together with batches behind it.
        if image.transaction is None and image.state_hash is not None:
            sums = image.state_hash
            mark = StateMark(image.offset, batch.hash, sums.shared, sums.controllers)
            self._marks.note(mark)
            self._digests.on_mark(mark)

    def _on_progress(self) -> None:
        if self._condition.stopped:
            return
        offset = self._applier.image.offset
        self._proposer.committed(offset)
        self._waiters.reached(offset)
        self.quorum.set_digest(self._marks.encode())
        self._judge()
        self._fetch.on_progress()
        self._self_registration.look()
        self._watching.wake()
        self._snapshotting.consider()

    def _judge(self) -> None:
        """Compare states; who is found wrong serves nobody."""
        verdict = self._digests.verdict(tuple(v.node_id for v in self.quorum.voters()))
        if verdict == self._condition.diverged:
            return
        if verdict and not self._condition.diverged:
            self._damage.found(STATE, verdict)
        self._condition.diverged = verdict
        if verdict:
            self._log.critical("state_diverged", reason=verdict)
            if self._digests.wrong:
                self._snapshotting.distrust(self._digests.agreed_at)
            if self._proposer.pending is not None:
                self.quorum.resign(verdict)
        else:
            self._log.warning("state_agrees_again")
