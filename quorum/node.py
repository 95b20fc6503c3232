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
    TransferRefusedError,
    Voter,
    VoterChangeRefusedError,
    VoterSet,
)
from quorum.config import QuorumConfig
from quorum.folder_opening import OpenedFolder, open_folder
from quorum.guard.context import BrokenPromiseError, NodeContext
from quorum.guard.guard import Guard
from quorum.guard.outbox import Outbox
from quorum.guard.tick_pace import next_tick_s
from quorum.journal import LogView
from quorum.journal.compaction import Compaction
from quorum.membership.formation import Formation
from quorum.membership.greeting import encode_greeting
from quorum.membership.voter_history import VoterHistory
from quorum.membership.voters_entry import decode_voters, encode_voters
from quorum.peers.peers import Peers
from quorum.raft.core import Role
from quorum.status import node_status
from quorum.wire.codec import BadBytesError
from quorum.wire.frames import FrameKind
from runtime.clock import Clock, Timer
from runtime.disk.errors import sentence
from runtime.disk.interface import Disk
from runtime.links.interface import LinkEnd, PeerLinks

if TYPE_CHECKING:
    from runtime.randomness import Random


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
        config = self.config
        opened = open_folder(
            config,
            self._disk,
            self._random,
            on_durable=self._on_durable,
            on_failed=self._disk_failed,
            log=self._log,
        )
        self._build(opened)
        self._peers.links.begin(self)
        if len(config.peers) == 1:
            self._peers.links.form()
        if self.context.voters.known:
            self.guard.core_callbacks.begin()
        self._started = True
        # Not at once: the owner must have the mark before its listener is called.
        self._timer = self._clock.call_later(0, self._on_timer)
        return None if opened.manifest is None else opened.manifest.mark

    def _build(self, opened: OpenedFolder) -> None:
        journal, manifests, manifest = opened
        formation = Formation(self.config, journal)
        self.context = context = NodeContext(
            config=self.config,
            clock=self._clock,
            random=self._random,
            disk=self._disk,
            links=self._links,
            listener=self._listener,
            log=self._log,
            journal=journal,
            formation=formation,
            voters=VoterHistory(self.config, journal, formation, manifests.current),
            outbox=Outbox(self._links, journal),
            view=LogView(journal),
            wake=self._wake,
        )
        context.repairs += manifests.restored
        self._manifests = manifests
        self.guard = Guard(context, manifests, 1 if manifest is None else manifest.mark.index)
        self._peers = Peers(context, self.guard)
        self._compaction = Compaction(
            journal,
            context.view,
            manifests,
            cluster_id=self.config.cluster_id,
            tail_bytes=self.config.tail_bytes,
            voters=self._peers.links.voters_at,
            wake=self._wake,
        )

    def stop(self) -> None:
        """Hand leadership over, sync and close; see `quorum.api`."""
        context = self.context
        if context.stopped:
            return
        successor = self.guard.transfer.successor()
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
            self.guard.reads.fail_all()

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

    def _turn(self, *, timer: bool = False) -> None:
        context = self.context
        core = context.core
        if core is not None:
            if timer:
                core.on_timer()
            else:
                core.tick()
            self.guard.catch_up.finish()
            self.guard.elections.on_turn()
            self.guard.transfer.on_turn()
            self._tell()
            if context.stopped:
                return
            self.guard.reads.on_turn(self.guard.delivery.delivered_index)
            self._propose_waiting()
            if core.role is Role.LEADER:
                self.guard.voter_changes.on_turn()
                self.guard.replication.on_turn()
        context.journal.sync()

    def _tell(self) -> None:
        delivery, listener = self.guard.delivery, self._listener
        if delivery.deliver_leadership_lost():
            self.guard.reads.fail_all()
        news, self.guard.catch_up.news = self.guard.catch_up.news, []
        for item in news:
            if item is None:
                listener.on_catch_up_dropped()
            else:
                listener.on_catch_up(*item)
        delivery.deliver_committed()
        delivery.deliver_leadership()
        delivery.deliver_leader(LeaderAndEpoch(self.guard.elections.leader, self.context.term))

    def _propose_waiting(self) -> None:
        journal, core = self.context.journal, self.context.core
        if (
            self.guard.proposals
            and core is not None
            and self.guard.delivery.announced is not None
            and not self.guard.transfer.running
            and journal.durable_position >= journal.position_needing_sync
        ):
            voters = self.guard.proposals.next_voters
            if voters is None:
                core.append(self.guard.proposals.take_entry())
            elif self.guard.voter_changes.may_begin(voters):
                core.append_voters(*self.guard.proposals.take_change())
            core.tick()

    def _on_durable(self) -> None:
        self._guarded(self._go_on_durable)

    def _go_on_durable(self) -> None:
        context = self.context
        self._synced_at = context.now
        self.guard.memory.on_durable()
        self._peers.links.tell_formation()
        context.outbox.release(context.term)
        if context.core is not None:
            if context.core.role is Role.LEADER:
                self.guard.replication.on_durable()
            self._turn()

    def _on_timer(self) -> None:
        self._timer = self._clock.call_later(
            next_tick_s(self.context, self.guard.elections), self._on_timer
        )
        self._guarded(self._tick)

    def _tick(self) -> None:
        context = self.context
        self._look_at_disk()
        self.guard.memory.on_tick()
        self.guard.heard_voters.on_tick()
        self._peers.links.tell_formation()
        self._peers.links.dialling.look()
        if context.core is not None:
            if context.core.role is Role.LEADER:
                self.guard.replication.on_tick()
                self.guard.voter_changes.keeping_up.on_tick()
                if (
                    not context.may_lead
                    and not self.guard.elections.last_resort
                    and self.guard.transfer.successor() is not None
                ):
                    self.guard.transfer.begin("our disk does not answer, or is full")
            self.guard.ceiling.on_tick(leader_heard=self.guard.elections.leader_heard())
            self.guard.repair.on_tick()
        wakes_all = context.core is not None and self._peers.digests.on_tick()
        self._turn(timer=True)
        if context.core is not None and context.core.role is Role.LEADER and not context.stopped:
            self.guard.replication.beat(early=wakes_all)

    def _look_at_disk(self) -> None:
        context = self.context
        if context.journal.durable_position >= context.journal.position_needing_sync:
            self._synced_at = context.now
        context.disk_is_stuck = context.now - self._synced_at > 2 * self.config.election_timeout_s

    # -- links (runtime.links.interface.LinkHandler) ------------------------------------------

    def greeting(self) -> bytes:
        return encode_greeting(self.config, self.context.journal, self.context.formation)

    def judge(self, node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        return self._peers.links.judge(node_id, greeting, certified)

    def on_link_up(self, node_id: int) -> None:
        self._guarded(lambda: self._peers.links.on_link_up(node_id))
        self._wake()

    def on_link_down(self, node_id: int, end: LinkEnd) -> None:
        self.guard.freshness.link_down(node_id)
        self._guarded(lambda: self._peers.links.on_link_down(node_id, end))
        self._guarded(lambda: self._peers.files.on_link_down(node_id))
        self._wake()

    def on_frame(self, node_id: int, frame: bytes) -> None:
        if self.context.stopped:
            return
        try:
            if not self._peers.take(node_id, frame):
                return
        except BrokenPromiseError as error:
            self._halt(str(error))
        except OSError as error:
            raw = error.errno is not None and error.strerror == os.strerror(error.errno)
            said = error.strerror or str(error)
            self._halt(sentence(error, "writing what a peer sent") if raw else said)
        self._wake()

    # -- quorum.api.Quorum --------------------------------------------------------------------

    def propose(self, payload: bytes) -> None:
        self._check_leads()
        self.guard.proposals.add(payload)
        self._wake()

    def _check_leads(self) -> None:
        """Raise unless proposals can enter the log."""
        if self.context.stopped:
            raise QuorumStoppedError("the quorum node has stopped")
        if self.guard.delivery.announced is None:
            raise NotLeaderError(*self.leader_and_epoch())
        if lack := self.context.journal.lack_of_room:
            raise NoRoomError(
                f"{lack}; free space on it or move the folder to a larger disk; nothing is lost"
            )

    def change_voters(self, voters: Sequence[Voter], payload: bytes) -> None:
        self._check_leads()
        refusal = self.refusal_of(voters)
        if refusal is not None:
            raise refusal
        self.guard.proposals.add_change(encode_voters(voters), payload)
        self._wake()

    def refusal_of(self, voters: Sequence[Voter]) -> VoterChangeRefusedError | None:
        if self.context.stopped or self.guard.delivery.announced is None:
            return VoterChangeRefusedError("this node does not lead", later=True)
        if self.guard.proposals.has_change:
            return VoterChangeRefusedError("another change of the voters is under way", later=True)
        refusal = self.guard.voter_changes.refusal_to_begin(voters)
        if refusal is None:
            try:
                decode_voters(encode_voters(voters))
            except BadBytesError as error:
                why = f"the voters can't be written: {error}"
                return VoterChangeRefusedError(why, later=False)
        return refusal

    def candidate(self, node_id: int) -> Voter | None:
        return self._peers.links.candidate(node_id)

    def unsent(self) -> int:
        return len(self.guard.proposals)

    def leader_and_epoch(self) -> LeaderAndEpoch:
        return self.guard.delivery.told

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        core = self.context.core
        if self.context.stopped or core is None or self.guard.delivery.announced is None:
            self._clock.call_soon(lambda: on_ready(False))
        else:
            self.guard.reads.add(core.commit_index, on_ready)

    def current_at(self) -> float | None:
        return self.guard.freshness.current_at

    def resign(self, reason: str) -> None:
        if self.context.core is not None and not self.context.stopped:
            self.guard.transfer.begin(reason)

    def refusal_to_hand_over(self, node_id: int) -> TransferRefusedError | None:
        busy = self.guard.proposals.has_change
        return self.guard.transfer.refusal_to(node_id, voters_change=busy)

    def hand_over(self, node_id: int, reason: str) -> None:
        context = self.context
        if context.stopped or self.guard.delivery.announced is None:
            raise NotLeaderError(*self.leader_and_epoch())
        refusal = self.refusal_to_hand_over(node_id)
        if refusal is not None:
            raise refusal
        if node_id != self.config.node_id:
            self.guard.transfer.begin(reason, context.replicas.get(node_id))

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        if not self.context.stopped:
            self._compaction.add(mark, on_done)

    def resumes_at(self) -> Mark | None:
        manifest = self._manifests.current
        return None if manifest is None else manifest.mark

    def caught_up(self, mark: Mark) -> None:
        if not self.context.stopped:
            self.guard.catch_up.caught_up(mark)
            self._wake()

    def out_of_reach(self, mark: Mark) -> None:
        self.guard.catch_up.out_of_reach(mark)

    def set_digest(self, digest: bytes) -> None:
        self._peers.digests.set(digest)

    def announce(self, data: bytes) -> None:
        self._peers.digests.announce(data)

    def tell(self, data: bytes) -> None:
        self._peers.digests.tell(data)

    def send_contacts(self, node_id: int, contacts: bytes) -> bool:
        return not self.context.stopped and self._peers.contacts.forward(node_id, contacts)

    def send_confirmed(self, node_id: int, confirmed: bytes) -> bool:
        return not self.context.stopped and self._peers.contacts.confirm(node_id, confirmed)

    def list_files(
        self,
        node_id: int,
        folder: str,
        on_reply: Callable[[Sequence[tuple[str, int]] | None], None],
    ) -> None:
        self._peers.files.ask_list(node_id, folder, on_reply)

    def read_file(
        self,
        node_id: int,
        name: str,
        position: int,
        length: int,
        on_reply: Callable[[PeerFile | None], None],
    ) -> None:
        self._peers.files.ask_piece(node_id, name, position, length, on_reply)

    def scrub(self) -> Generator[int, None, None]:
        return self.context.journal.scrub()

    def voters(self) -> tuple[Voter, ...]:
        return self._peers.links.voters()

    def voter_set(self) -> VoterSet:
        core, newest = self.context.core, self.context.voters.newest
        settled = core is not None and newest.index <= core.commit_index
        return self._peers.links.voter_set(settled=settled and not self.guard.proposals.has_change)

    def status(self) -> QuorumStatus:
        return node_status(self.context, self.guard)
