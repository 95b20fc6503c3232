"""Linearizable reads by ReadIndex: after the call, a majority confirms that we still lead.

Rule: a round that began before a call proves nothing for it. Calls that come during a round wait
for the next one and share it. An answer counts only in its own term. A damaged node's answer does
not count, because the node may have forgotten a vote for somebody else.
"""

from collections.abc import Callable

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.wire.frames import FrameKind

OnReady = Callable[[bool], None]


class ReadIndexes:
    """The reads that wait on a leader."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._round = 0
        self._asked_at = -1.0
        self._answered: set[int] = set()
        self._waiting: list[tuple[int, OnReady]] = []
        """For the next round: the commit index at the call, and the callback."""
        self._asking: list[tuple[int, OnReady]] = []
        self._confirmed: list[tuple[int, OnReady]] = []

    def add(self, commit_index: int, on_ready: OnReady) -> None:
        """Queue a read. The caller has checked that this leader has committed in its epoch."""
        self._waiting.append((commit_index, on_ready))
        self._context.wake()

    def on_turn(self, delivered_index: int) -> None:
        """Begin a round if calls wait and none is under way; call back the reads that are ready."""
        if self._waiting and not self._asking:
            self._asking, self._waiting = self._waiting, []
            self._round += 1
            self._answered = {self._context.config.node_id}
            self._ask()
            self._judge()
        elif (
            self._asking and self._context.now - self._asked_at >= self._context.config.heartbeat_s
        ):
            self._ask()
        if self._confirmed:
            ready = [item for item in self._confirmed if item[0] <= delivered_index]
            self._confirmed = [item for item in self._confirmed if item[0] > delivered_index]
            for _, on_ready in ready:
                on_ready(True)

    def _ask(self) -> None:
        context = self._context
        self._asked_at = context.now
        for replica in context.replicas.linked_voters():
            if replica.node_id not in self._answered:
                context.outbox.send(replica.node_id, FrameKind.PROBE, context.term, self._round)

    def on_answer(self, replica: PeerReplica, number: int, *, counted: bool) -> None:
        """Take an answer of the current term."""
        if self._asking and number == self._round and replica.is_voter and counted:
            self._answered.add(replica.node_id)
            self._judge()

    def _judge(self) -> None:
        if self.is_confirmed(len(self._answered)):
            self._confirmed += self._asking
            self._asking = []
            self._context.wake()

    def is_confirmed(self, voices: int) -> bool:
        """Tell whether so many voters, this one included, are a majority."""
        return voices >= self._context.voters.majority()

    def on_voters_changed(self) -> None:
        """Begin the present round again: other voters have to confirm it."""
        if self._asking:
            self._waiting = self._asking + self._waiting
            self._asking = []

    def fail_all(self) -> None:
        """Fail every read: this node does not lead any more."""
        failed = self._confirmed + self._asking + self._waiting
        self._confirmed, self._asking, self._waiting = [], [], []
        for _, on_ready in failed:
            on_ready(False)
