"""The leader's side: sends appends and takes acknowledgements.

Rule: the core learns of an acknowledgement only up to the index where our *own* copy is durable. It
counts only if it was given in the current term, by a replica that counts, for an index that we
have.

After each acknowledgement the guard also sets where the core goes on sending. Left alone, the core
would go back to the acknowledged index and send everything in flight again.

Entries leave when the core sends them. An append without entries is sent for two reasons only: a
follower has been sent nothing for the time of a heartbeat, or it has not heard of the newest commit
index for `NOTICE_S`. While changes follow one another, each change's append tells the commit index
of the change before, so a change costs one append a follower and one acknowledgement. The guard
drops the core's own appends without entries.

A follower's window is bounded. When the window, or the link's queue, is full, the guard tells the
core that the follower is not connected, so the core stops sending. `_resume` connects it again.
"""

from collections.abc import Sequence

from quorum.guard.context import NodeContext
from quorum.guard.replicas import NEVER, PeerReplica
from quorum.journal import Entry
from quorum.raft.core import Core
from quorum.raft.core_node import CoreNode
from quorum.raft.messages import AppendEntries, AppendReply
from quorum.wire.frames import FrameKind

NOTICE_S = 0.005
"""A commit index that no entry takes to the followers is sent to them after this time."""
_CLOCKS_DIFFER_S = 0.0005
"""A timer may fire this much earlier than our clock says."""


class Replication:
    """A leader's replication to its followers. Idle while we don't lead."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._encoded: tuple[tuple[int, ...], bytes] = ((), b"")
        self._untold_since = NEVER
        """Since when a follower lacks a commit index that we have; NEVER: none does."""
        self._wakes_at = NEVER
        """When the newest timer for a notice fires, or fired."""

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
        """We don't lead any more: disconnect every replica. Called from inside the core."""
        for replica in self._context.replicas:
            self._disconnect(replica)

    def link_up(self, replica: PeerReplica) -> None:
        """A link opened while we lead: go on after the last acknowledged entry."""
        if replica.acked:
            replica.sent = replica.floor = replica.acked
        else:
            replica.begin_epoch(self._context.view.last)
        self._connect(replica)
        self._aim(replica)

    def link_down(self, replica: PeerReplica) -> None:
        """A link ended."""
        self._disconnect(replica)

    def became_voter(self, replica: PeerReplica) -> None:
        """Our core counts this replica from now on, and has forgotten what it knew of it."""
        replica.fed = 0
        replica.core_next = self._context.view.last + 1
        if replica.linked:
            self.link_up(replica)
        if self._feed(replica):
            self._aim(replica)

    def is_leaving(self, replica: PeerReplica) -> bool:
        """Tell whether its removal from the voters is not committed yet."""
        return self._context.voters.is_leaving(*replica.identity, self._core.commit_index)

    def _connect(self, replica: PeerReplica) -> None:
        if not replica.connected and not self.is_leaving(replica):
            replica.connected = True
            replica.held_back_at = replica.appended_at = NEVER
            self._core.connect(replica.node, voter=replica.is_voter)
            if not replica.is_voter:
                # The core resets what it knows of an observer at every connection.
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
        if not entries:
            # `on_turn` and `beat` send these when they are due.
            return True
        last = entries[-1][1]
        replica.core_next = last + 1
        sent = self._has_room(replica, last) and self._send(
            replica, message.previous, message.previous_term, entries
        )
        if sent:
            replica.sent = max(replica.sent, last)
        else:
            self._hold_back(replica)
        return sent

    def on_turn(self) -> None:
        """Tell followers the commit index if they have lacked it for `NOTICE_S`."""
        context = self._context
        commit = self._core.commit_index
        behind = [r for r in context.replicas if r.connected and r.told_commit < commit]
        if behind:
            commit = self.borne_out(commit)
            behind = [replica for replica in behind if replica.told_commit < commit]
        if not behind:
            self._untold_since = NEVER
            return
        now = context.now
        if self._untold_since == NEVER:
            self._untold_since = now
        due = self._untold_since + NOTICE_S
        if now >= due - _CLOCKS_DIFFER_S:
            self._untold_since = NEVER
            for replica in behind:
                self._send_bare(replica)
        elif now >= self._wakes_at - _CLOCKS_DIFFER_S:
            self._wakes_at = due
            context.clock.call_later(due - now, context.wake)

    def beat(self, *, early: bool) -> None:
        """Send a heartbeat to each follower that has been sent nothing for its time.

        `early`: followers are woken now anyway, so half of that time is enough.
        """
        context = self._context
        after_s = context.config.heartbeat_s / (2 if early else 1)
        for replica in context.replicas:
            if replica.connected and context.now - replica.appended_at >= after_s:
                self._send_bare(replica)

    def _send_bare(self, replica: PeerReplica) -> None:
        """Send an append without entries."""
        view = self._context.view
        previous = max(min(replica.sent, view.last), view.first)
        self._send(replica, previous, view.term_at(previous), ())

    def _send(
        self, replica: PeerReplica, previous: int, previous_term: int, entries: Sequence[Entry]
    ) -> bool:
        context = self._context
        commit = self.borne_out(self._core.commit_index)
        frame = self._frame(commit, previous, previous_term, entries)
        if not context.outbox.send_encoded(replica.node_id, frame):
            return False
        replica.told_commit = commit
        replica.appended_at = context.now
        return True

    def _frame(
        self, commit: int, previous: int, previous_term: int, entries: Sequence[Entry]
    ) -> bytes:
        """Return an append's bytes. Followers that are equally far share them."""
        context = self._context
        term = self._core.term
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
        replica.appended_at = self._context.now
        if not sent:
            self._hold_back(replica)
        return sent

    # In.

    def on_ack(self, replica: PeerReplica, match: int, next_index: int, *, counted: bool) -> None:
        """Take a follower's answer of the current term."""
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

        Don't go below what it acknowledged: a late or repeated answer may name such an index. But
        a follower that keeps naming it for a whole election timeout has lost the entries. Sending
        them again promises nothing.
        """
        now = self._context.now
        if next_index > replica.acked or not counted:
            return True
        if replica.lacks_since == NEVER:
            replica.lacks_since = now
        return now - replica.lacks_since >= self._context.config.election_timeout_s

    def on_durable(self) -> None:
        """Pass on acknowledgements that our own durable copy now covers."""
        for replica in self._context.replicas:
            if self._feed(replica):
                self._aim(replica)

    def on_tick(self) -> None:
        """Ask followers that are held back how far they are: every frame in flight may be lost."""
        context = self._context
        for replica in context.replicas:
            held_back_at = replica.held_back_at
            if held_back_at == NEVER or not replica.linked:
                continue
            if context.now - held_back_at >= context.config.heartbeat_s:
                replica.held_back_at = context.now
                self._send_bare(replica)

    def _resume(self, replica: PeerReplica) -> None:
        if replica.held_back_at == NEVER or not replica.linked:
            return
        in_flight = self._context.view.bytes_between(replica.floor, replica.sent)
        if in_flight <= self._context.config.window_bytes // 2:
            self._connect(replica)

    def _feed(self, replica: PeerReplica) -> bool:
        """Pass a follower's acknowledgement to the core, up to the index that is durable here."""
        fed = self.borne_out(replica.acked)
        if fed <= replica.fed or not (replica.connected or replica.is_voter):
            return False
        replica.fed = fed
        replica.core_next = fed + 1
        self._tell(replica, next_index=fed + 1, success=True)
        return True

    def borne_out(self, index: int) -> int:
        """Return the index, or the end of our own durable copy if that is lower."""
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
