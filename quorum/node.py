"""One node of the quorum: makes its parts, and runs them in a fixed order.

Rule: every event enters here: a call of the owner, a frame, a link that opens or ends, a completed
sync, the timer. Each event ends in a *turn*: the core ticks, the listener hears the news, waiting
payloads become an entry, and what was written is synced.

A failing disk or a `BrokenPromiseError` stops the node. Any other exception is a defect of ours and
is not caught.
"""

import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from quorum.api import (
    LeaderAndEpoch,
    Mark,
    NoRoomError,
    NotLeaderError,
    PeerFile,
    QuorumListener,
    QuorumStatus,
    QuorumStoppedError,
    Voter,
)
from quorum.config import QuorumConfig
from quorum.guard.catch_up import FollowerCatchUp
from quorum.guard.ceiling import Ceiling
from quorum.guard.context import BrokenPromiseError, NodeContext
from quorum.guard.core_callbacks import CoreCallbacks
from quorum.guard.delivery import Delivery
from quorum.guard.elections import Elections
from quorum.guard.following import Following
from quorum.guard.freshness import DeliveryFreshness
from quorum.guard.memory import Memory
from quorum.guard.outbox import Outbox
from quorum.guard.reads import ReadIndexes
from quorum.guard.repair import Repair
from quorum.guard.replication import Replication
from quorum.guard.transfer import Transfer
from quorum.journal import LogView, RaftJournal
from quorum.journal.compaction import Compaction
from quorum.journal.lineage import DRAWN_BYTES
from quorum.journal.manifest_store import ManifestStore
from quorum.membership.formation import Formation
from quorum.membership.greeting import encode_greeting
from quorum.peers.digests import Digests
from quorum.peers.dispatch import Dispatch
from quorum.peers.files import FileExchange
from quorum.peers.format_negotiation import FormatNegotiation
from quorum.peers.links import Membership
from quorum.raft.core import Role
from quorum.raft.proposals import Proposals
from quorum.status import node_status
from quorum.wire.frames import FrameKind
from runtime.clock import Clock, Timer
from runtime.disk import Disk
from runtime.disk_errors import sentence
from runtime.links import LinkEnd, PeerLinks

if TYPE_CHECKING:
    from runtime.randomness import Random


ACCEPT_LOSS = "accept-loss"
"""The file by which an operator accepts that a majority's data is lost (see the runbook)."""
ACCEPT_EPOCH = "accept-epoch"
"""The file by which an operator accepts an impossible epoch in the journals (see the runbook)."""


class QuorumNode:
    """`quorum.api.Quorum` over PySyncObj."""

    def __init__(
        self,
        config: QuorumConfig,
        *,
        clock: Clock,
        random: "Random",
        disk: Disk,
        links: PeerLinks,
        listener: QuorumListener,
        log: FilteringBoundLogger,
    ) -> None:
        self.config = config
        self._clock = clock
        self._random = random
        self._disk = disk
        self._links = links
        self._listener = listener
        self._log = log.bind(node_id=config.node_id)
        self._turn_due = False
        self._timer: Timer | None = None
        self._synced_at = clock.monotonic()
        self._started = False

    # -- start and stop ----------------------------------------------------------------------

    def start(self) -> Mark | None:
        """Open the folder and join the peers; see `quorum.api`."""
        config, disk = self.config, self._disk
        disk.lock()
        manifests = ManifestStore(disk, on_failed=self._disk_failed, log=self._log)
        manifest = manifests.load()
        accepts_epoch = disk.exists(ACCEPT_EPOCH)
        journal = RaftJournal.open(
            disk,
            cluster_id=config.cluster_id,
            node_id=config.node_id,
            new_directory_id=self._random.randbytes(16),
            manifest=manifest,
            on_durable=self._on_durable,
            on_failed=self._disk_failed,
            log=self._log,
            segment_bytes=config.segment_bytes,
            reserve_bytes=config.reserve_bytes,
            accepts_epoch=accepts_epoch,
        )
        if accepts_epoch:
            self._heard_once(ACCEPT_EPOCH)
        if disk.exists(ACCEPT_LOSS):
            journal.accept_loss()
            self._heard_once(ACCEPT_LOSS)
        journal.begin_incarnation(self._random.randbytes(DRAWN_BYTES))
        self._build(journal, manifests, manifest.mark.index if manifest is not None else 1)
        self._links.set_peers(config.peers)
        self._links.start(self)
        if len(config.peers) == 1:
            self._membership.form()
        if self.context.formation.known:
            self._core_side.begin()
        self._started = True
        # Not at once: the owner must have the mark before its listener is called.
        self._timer = self._clock.call_later(0, self._on_timer)
        return manifest.mark if manifest is not None else None

    def _heard_once(self, name: str) -> None:
        """Remove an operator's file, durably, so that it is not obeyed again after a crash."""
        self._disk.unlink(name)
        self._disk.sync_folder("")

    def _build(self, journal: RaftJournal, manifests: ManifestStore, resumed_at: int) -> None:
        self.context = context = NodeContext(
            config=self.config,
            clock=self._clock,
            random=self._random,
            disk=self._disk,
            links=self._links,
            listener=self._listener,
            log=self._log,
            journal=journal,
            formation=Formation(self.config, journal),
            outbox=Outbox(self._links, journal),
            view=LogView(journal),
            wake=self._wake,
        )
        context.repairs += manifests.restored
        self.delivery = Delivery(context, resumed_at)
        self._catch_up = FollowerCatchUp(context, manifests, self.delivery.caught_up)
        self._ceiling = Ceiling(context)
        self._elections = Elections(context)
        self._repair = Repair(context)
        self._memory = Memory(context)
        self._following = Following(context, self._elections, self._catch_up, self._repair)
        self._replication = Replication(context)
        self._transfer = Transfer(context, self._elections)
        self._reads = ReadIndexes(context)
        self._files = FileExchange(context)
        self._format_negotiation = FormatNegotiation(context, self._files)
        self._files.formats_for = self._format_negotiation.answer
        self._freshness = DeliveryFreshness(context, self.delivery)
        self._digests = Digests(context, self._freshness)
        self._proposals = Proposals()
        self._core_side = CoreCallbacks(
            context,
            manifests,
            elections=self._elections,
            following=self._following,
            replication=self._replication,
            delivery=self.delivery,
            proposals=self._proposals,
        )
        self._membership = Membership(
            context, self._elections, self._replication, self._memory, self._core_side.begin
        )
        self._compaction = Compaction(
            journal,
            context.view,
            manifests,
            cluster_id=self.config.cluster_id,
            tail_bytes=self.config.tail_bytes,
            voters=self._membership.voters,
            wake=self._wake,
        )
        self._dispatch = Dispatch(
            context,
            ceiling=self._ceiling,
            elections=self._elections,
            following=self._following,
            replication=self._replication,
            repair=self._repair,
            memory=self._memory,
            reads=self._reads,
            files=self._files,
            freshness=self._freshness,
        )

    def stop(self) -> None:
        """Hand leadership over, sync and close; see `quorum.api`."""
        context = self.context
        if context.stopped:
            return
        successor = self._transfer.successor()
        if context.core is not None and context.core.role is Role.LEADER and successor is not None:
            context.outbox.send(successor.node_id, FrameKind.TIMEOUT_NOW, context.term)
        self._end()
        context.journal.close()

    def _end(self) -> None:
        self.context.stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._links.stop()

    def _halt(self, reason: str) -> None:
        # Until the node has started, `start` itself raises the error.
        if self._started and not self.context.stopped:
            self._end()
            self._log.critical("quorum_stopped", why=reason)
            # Before the reads fail, so that the owner can say why.
            self._listener.on_stopped(reason)
            self._reads.fail_all()

    def _disk_failed(self, error: OSError) -> None:
        # Later, since the core may be running. The journal makes nothing durable from here on.
        reason = error.strerror or str(error)
        self._clock.call_soon(lambda: self._halt(reason))

    # -- turns -------------------------------------------------------------------------------

    def _wake(self) -> None:
        if not self._turn_due and not self.context.stopped:
            self._turn_due = True
            self._clock.call_soon(self._due_turn)

    def _due_turn(self) -> None:
        self._turn_due = False
        self._guarded(self._turn)

    def _guarded(self, work: Callable[[], None]) -> None:
        if self.context.stopped:
            return
        try:
            work()
        except (BrokenPromiseError, OSError) as error:
            self._halt(str(error))

    def _turn(self) -> None:
        context = self.context
        core = context.core
        if core is not None:
            core.tick()
            self._catch_up.finish()
            self._elections.on_turn()
            self._transfer.on_turn()
            self._tell()
            if context.stopped:
                return
            self._reads.on_turn(self.delivery.delivered_index)
            self._propose_waiting()
        context.journal.sync()

    def _tell(self) -> None:
        delivery, listener = self.delivery, self._listener
        if delivery.deliver_leadership_lost():
            self._reads.fail_all()
        news, self._catch_up.news = self._catch_up.news, []
        for item in news:
            if item is None:
                listener.on_catch_up_dropped()
            else:
                listener.on_catch_up(*item)
        delivery.deliver_committed()
        delivery.deliver_leadership()
        delivery.deliver_leader(LeaderAndEpoch(self._elections.leader, self.context.term))

    def _propose_waiting(self) -> None:
        journal, core = self.context.journal, self.context.core
        if (
            self._proposals
            and core is not None
            and self.delivery.announced is not None
            and not self._transfer.running
            and journal.durable_position >= journal.position_needing_sync
        ):
            core.append(self._proposals.take_entry())
            core.tick()

    def _on_durable(self) -> None:
        self._guarded(self._go_on_durable)

    def _go_on_durable(self) -> None:
        context = self.context
        self._synced_at = context.now
        self._memory.on_durable()
        context.outbox.release(context.term)
        if context.core is not None:
            if context.core.role is Role.LEADER:
                self._replication.on_durable()
            self._turn()

    def _on_timer(self) -> None:
        self._timer = self._clock.call_later(self.config.tick_s, self._on_timer)
        self._guarded(self._tick)

    def _tick(self) -> None:
        context = self.context
        self._look_at_disk()
        self._memory.on_tick()
        if context.core is not None:
            if context.core.role is Role.LEADER:
                self._replication.on_tick()
                if (
                    not context.may_lead
                    and not self._elections.last_resort
                    and self._transfer.successor() is not None
                ):
                    self._transfer.begin("our disk does not answer, or is full")
            self._ceiling.on_tick(leader_heard=self._elections.leader_heard())
            self._repair.on_tick()
            self._digests.on_tick()
        self._turn()

    def _look_at_disk(self) -> None:
        context = self.context
        if context.journal.durable_position >= context.journal.position_needing_sync:
            self._synced_at = context.now
        context.disk_is_stuck = context.now - self._synced_at > 2 * self.config.election_timeout_s

    # -- links (runtime.links.LinkHandler) ----------------------------------------------------

    def greeting(self) -> bytes:
        return encode_greeting(self.config, self.context.journal, self.context.formation)

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        return self._membership.judge(node_id, greeting, certified)

    def on_link_up(self, node_id: int) -> None:
        self._guarded(lambda: self._membership.on_link_up(node_id))
        self._guarded(lambda: self._format_negotiation.on_link_up(node_id))
        self._wake()

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        self._freshness.link_down(node_id)
        self._guarded(lambda: self._membership.on_link_down(node_id, end))
        self._wake()

    def on_frame(self, node_id: int, frame: bytes) -> None:
        if self.context.stopped:
            return
        read = self._dispatch.read(node_id, frame)
        if read is None:
            return
        replica, fields = read
        try:
            if fields[0] == FrameKind.FORMATION:
                self._membership.on_formation(replica, fields[3])
            else:
                self._dispatch.take(replica, fields)
        except BrokenPromiseError as error:
            self._halt(str(error))
        except OSError as error:
            raw = error.errno is not None and error.strerror == os.strerror(error.errno)
            said = error.strerror or str(error)
            self._halt(sentence(error, "writing what a peer sent") if raw else said)
        self._wake()

    # -- quorum.api.Quorum --------------------------------------------------------------------

    def propose(self, payload: bytes) -> None:
        if self.context.stopped:
            raise QuorumStoppedError("the quorum node has stopped")
        if self.delivery.announced is None:
            raise NotLeaderError(*self.leader_and_epoch())
        if not self.context.journal.has_room:
            raise NoRoomError(
                f"{self.context.journal.lack_of_room}; free space on it or move the folder to a "
                "larger disk; nothing is lost"
            )
        self._proposals.add(payload)
        self._wake()

    def leader_and_epoch(self) -> LeaderAndEpoch:
        return self.delivery.told

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        core = self.context.core
        if self.context.stopped or core is None or self.delivery.announced is None:
            self._clock.call_soon(lambda: on_ready(False))
        else:
            self._reads.add(core.commit_index, on_ready)

    def current_at(self) -> float | None:
        return self._freshness.current_at

    def resign(self, reason: str) -> None:
        if self.context.core is not None and not self.context.stopped:
            self._transfer.begin(reason)

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        if not self.context.stopped:
            self._compaction.add(mark, on_done)

    def caught_up(self, mark: Mark) -> None:
        if not self.context.stopped:
            self._catch_up.caught_up(mark)
            self._wake()

    def set_digest(self, digest: bytes) -> None:
        self._digests.set(digest)

    def announce(self, data: bytes) -> None:
        self._digests.announce(data)

    def list_files(
        self,
        node_id: int,
        folder: str,
        on_reply: Callable[[Sequence[tuple[str, int]] | None], None],
    ) -> None:
        self._files.ask_list(node_id, folder, on_reply)

    def read_file(
        self,
        node_id: int,
        name: str,
        position: int,
        length: int,
        on_reply: Callable[[PeerFile | None], None],
    ) -> None:
        self._files.ask_piece(node_id, name, position, length, on_reply)

    def scrub(self) -> Generator[int, None, None]:
        return self.context.journal.scrub()

    def voters(self) -> tuple[Voter, ...]:
        return self._membership.voters()

    def status(self) -> QuorumStatus:
        return node_status(
            self.context, self._elections, self.delivery, self._catch_up, self._ceiling
        )
