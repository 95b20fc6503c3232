"""The leader's side: appends on their way out, acknowledgements on their way in.

Rule: the core hears of an acknowledgement only as far as our *own* copy is durable, and only
what was said in the current term, by a replica that counts, of an index that we have. After each
it is told again where to go on sending: on its own it goes back to the acknowledged index and
sends all that is in flight once more.

A follower's window is bounded: when it is full, or the link's queue is, the core is told that
the follower is not connected, which ends its sending; `resume` connects it again.
"""

from collections.abc import Sequence

from quorum.guard.context import NodeContext
from quorum.guard.replicas import NEVER, PeerReplica
from quorum.journal import Entry
from quorum.raft.core import Core
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import AppendEntries, AppendReply
from quorum.wire.frames import FrameKind


class Replication:
    """What a leader keeps of its followers. Idle while we don't lead."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._encoded: tuple[tuple[int, ...], bytes] = ((), b"")

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    # Whom the core may send to.

    def begin_epoch(self) -> None:
        """We lead now: connect every linked replica. Called from inside the core."""
        last = self._context.view.last
        for replica in self._context.replicas:
            replica.begin_epoch(last)
            if replica.linked:
                self._connect(replica)

    def end_epoch(self) -> None:
        """We don't lead any more. Called from inside the core."""
        for replica in self._context.replicas:
            self._disconnect(replica)

    def link_up(self, replica: PeerReplica) -> None:
        """A link opened while we lead: go on from what is known to be there."""
        if replica.acked:
            replica.sent = replica.floor = replica.acked
        else:
            replica.begin_epoch(self._context.view.last)
        self._connect(replica)
        self._aim(replica)

    def link_down(self, replica: PeerReplica) -> None:
        """A link ended."""
        self._disconnect(replica)

    def _connect(self, replica: PeerReplica) -> None:
        if not replica.connected:
            replica.connected = True
            replica.held_back_at = NEVER
            self._core.connect(replica.node, voter=replica.is_voter)
            if not replica.is_voter:
                # The core begins an observer anew at every connection.
                replica.fed = 0
                replica.core_next = self._context.view.last + 1

    def _disconnect(self, replica: PeerReplica) -> None:
        replica.held_back_at = NEVER
        if replica.connected:
            replica.connected = False
            self._core.disconnect(replica.node, voter=replica.is_voter)

    # Out.

    def send_append(self, node: CoreNode, message: AppendEntries) -> bool:
        """Send an append of the core's. Called from inside the core."""
        replica = self._context.replicas.of(node)
        if replica is None:
            return False
        entries = message.entries
        sent = True
        if entries:
            last = entries[-1][1]
            replica.core_next = last + 1
            sent = self._has_room(replica, last)
        sent = sent and self._context.outbox.send_encoded(
            replica.node_id,
            self._frame(message.previous, message.previous_term, entries),
        )
        if entries and sent:
            replica.sent = max(replica.sent, last)
        elif entries:
            self._hold_back(replica)
        return sent

    def _frame(self, previous: int, previous_term: int, entries: Sequence[Entry]) -> bytes:
        """Encode an append; followers that are equally far share the bytes."""
        context = self._context
        term = self._core.term
        commit = self.borne_out(self._core.commit_index)
        key = (term, commit, previous, len(entries))
        if self._encoded[0] != key:
            frame = context.outbox.encode(
                FrameKind.APPEND, term, commit, previous, previous_term, entries
            )
            self._encoded = (key, frame)
        return self._encoded[1]

    def _has_room(self, replica: PeerReplica, last: int) -> bool:
        if replica.sent <= replica.floor:
            return True
        in_flight = self._context.view.bytes_between(replica.floor, last)
        return in_flight <= self._context.config.window_bytes

    def _hold_back(self, replica: PeerReplica) -> None:
        self._disconnect(replica)
        replica.held_back_at = self._context.now

    def send_manifest(self, node: CoreNode, manifest: bytes) -> bool:
        """Send our manifest to a follower that is too far behind. Called from inside the core."""
        replica = self._context.replicas.of(node)
        if replica is None:
            return False
        replica.sent = replica.floor = self._context.view.first + 1
        replica.core_next = replica.sent + 1
        commit = self.borne_out(self._core.commit_index)
        sent = self._context.outbox.send(
            replica.node_id, FrameKind.SNAPSHOT, self._core.term, commit, manifest
        )
        if not sent:
            self._hold_back(replica)
        return sent

    # In.

    def on_ack(self, replica: PeerReplica, match: int, next_index: int, *, counted: bool) -> None:
        """Take an answer of the current term."""
        last = self._context.view.last
        if match > last or next_index > last + 1:
            self._context.count("ack_beyond_our_log")
            return
        replica.answered_at = self._context.now
        if match >= 0:
            replica.lacks_since = NEVER
            if counted:
                replica.acked = max(replica.acked, match)
            replica.sent = max(replica.sent, match)
            replica.floor = max(replica.floor, match)
        elif next_index > 0 and self._goes_back(replica, next_index, counted=counted):
            replica.sent = replica.floor = next_index - 1
        self._resume(replica)
        if not self._feed(replica):
            self._tell(replica)
        self._aim(replica)

    def _goes_back(self, replica: PeerReplica, next_index: int, *, counted: bool) -> bool:
        """Tell whether to send again from where a follower says that its log ends.

        Not below what it acknowledged: an answer that is late or came twice says such. One that
        says so for a whole election timeout has lost it. To send again promises nothing.
        """
        now = self._context.now
        if next_index > replica.acked or not counted:
            return True
        if replica.lacks_since == NEVER:
            replica.lacks_since = now
        return now - replica.lacks_since >= self._context.config.election_timeout_s

    def on_durable(self) -> None:
        """Our own copy has become durable further."""
        for replica in self._context.replicas:
            if self._feed(replica):
                self._aim(replica)

    def on_tick(self) -> None:
        """Ask followers that are held back how far they are; they may have lost all of it."""
        context = self._context
        for replica in context.replicas:
            held_back_at = replica.held_back_at
            if held_back_at == NEVER or not replica.linked:
                continue
            if context.now - held_back_at >= context.config.heartbeat_s:
                replica.held_back_at = context.now
                previous = max(min(replica.sent, context.view.last), context.view.first)
                frame = self._frame(previous, context.view.term_at(previous), [])
                context.outbox.send_encoded(replica.node_id, frame)

    def _resume(self, replica: PeerReplica) -> None:
        if replica.held_back_at == NEVER or not replica.linked:
            return
        in_flight = self._context.view.bytes_between(replica.floor, replica.sent)
        if in_flight <= self._context.config.window_bytes // 2:
            self._connect(replica)

    def _feed(self, replica: PeerReplica) -> bool:
        """Tell the core how far a follower is, up to what is durable here."""
        fed = self.borne_out(replica.acked)
        if fed <= replica.fed or not (replica.connected or replica.is_voter):
            return False
        replica.fed = fed
        replica.core_next = fed + 1
        self._tell(replica, next_index=fed + 1, success=True)
        return True

    def borne_out(self, index: int) -> int:
        """Return how far an index may be counted, or said: no further than our durable copy."""
        return min(index, self._context.view.durable)

    def _aim(self, replica: PeerReplica) -> None:
        """Tell the core where to go on sending."""
        wanted = replica.sent + 1
        if replica.core_next != wanted and replica.connected:
            replica.core_next = wanted
            self._tell(replica, next_index=wanted, reset=True)

    def _tell(
        self,
        replica: PeerReplica,
        *,
        next_index: int = 0,
        success: bool = False,
        reset: bool = False,
    ) -> None:
        if not (replica.connected or replica.is_voter):
            return
        self._core.receive(replica.node, AppendReply(next_index, success, reset))
