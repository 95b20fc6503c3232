"""Decides what the listener hears, and in which order.

Rule: an entry is delivered when it is committed *and* our own copy is durable, in order, once. The
second condition matters for a single voter, whose core counts its own copy at once.

The listener hears of lost leadership before any entry that a later leader committed. It hears of
won leadership after every entry that was committed before.

The core never calls the listener: what it applies waits here until the node's turn.
"""

from collections import deque

from quorum.api import LeaderAndEpoch, Mark
from quorum.guard.context import NodeContext
from quorum.raft.core import Role


class Delivery:
    """Delivers committed entries and changes of leadership to the listener, in order."""

    def __init__(self, context: NodeContext, resumed_at: int) -> None:
        self._context = context
        self._applied: deque[tuple[int, int, tuple[bytes, ...]]] = deque()
        self.delivered_index = resumed_at
        """Every entry up to this index has been delivered, or is covered by the mark."""
        self.announced: int | None = None
        """The epoch in which the listener heard that we lead; None: it has not heard so."""
        self._noop_index = 0
        self._lost: list[int] = []
        self._caught_up: Mark | None = None
        self.told = LeaderAndEpoch(None, context.journal.term)
        """The leader and epoch that the listener heard last."""

    def applied(self, payloads: tuple[bytes, ...]) -> None:
        """Take an entry from the core."""
        context = self._context
        assert context.core is not None
        index = context.core.last_applied + 1
        self._applied.append((index, context.view.term_at(index), payloads))

    def leading(self) -> None:
        """The core has become leader; its no-op entry follows. Called from inside the core."""
        self._noop_index = self._context.view.last + 1

    def leading_no_more(self) -> None:
        """The core has stopped leading. Called from inside the core."""
        if self.announced is not None:
            self._lost.append(self.announced)
            self.announced = None

    def caught_up(self, mark: Mark) -> None:
        """The log now begins at a mark."""
        self._applied.clear()
        self._caught_up = mark
        self.delivered_index = mark.index

    def deliver_leadership_lost(self) -> bool:
        """Tell the listener of lost leadership; True when there was any to tell of."""
        lost, self._lost = self._lost, []
        for epoch in lost:
            self._context.listener.on_leadership_lost(epoch)
        return bool(lost)

    def deliver_committed(self) -> None:
        """Deliver what is committed and durable."""
        context = self._context
        if self._caught_up is not None:
            mark, self._caught_up = self._caught_up, None
            context.listener.on_caught_up(mark)
        assert context.core is not None
        last_applied = context.core.last_applied
        if last_applied <= self.delivered_index:
            return
        durable = self.limit()
        applied = self._applied
        while applied and applied[0][0] <= durable and not context.stopped:
            index, epoch, payloads = applied.popleft()
            self.delivered_index = index
            context.listener.on_committed(index, epoch, payloads)
        reached = min(last_applied, durable, applied[0][0] - 1 if applied else last_applied)
        self.delivered_index = max(self.delivered_index, reached)

    def limit(self) -> int:
        """Return the highest index that may be delivered: our own copy is durable up to it."""
        return self._context.view.durable

    def deliver_leadership(self) -> None:
        """Tell the listener that we lead, once our no-op is applied and delivered."""
        context = self._context
        core = context.core
        assert core is not None
        if (
            core.role is Role.LEADER
            and self.announced is None
            and self.delivered_index >= self._noop_index
        ):
            self.announced = core.term
            context.listener.on_leadership(core.term)

    def deliver_leader(self, now: LeaderAndEpoch) -> None:
        """Tell the listener who leads, if that has changed and the epoch is durable.

        Nobody may see an epoch that a loss of power could take back.
        """
        context = self._context
        if now != self.told and context.outbox.is_durable(context.journal.position_of_vote):
            self.told = now
            self._context.listener.on_leader_changed(now)
