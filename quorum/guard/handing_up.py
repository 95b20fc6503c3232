"""What the listener is told, and in which order.

Rule: an entry goes up when it is committed *and* our own copy is durable, in order, once. That
is also the single voter's rule, whose core counts itself at once. Losing leadership is told
before anything a later leader committed; gaining it after all that was committed before.

The listener is never called from inside the core: what the core applies waits here until then.
"""

from collections import deque

from quorum.api import LeaderAndEpoch, Mark
from quorum.guard.inside import Inside
from quorum.raft.core import Role


class HandingUp:
    """Keeps the order of what goes up."""

    def __init__(self, inside: Inside, resumed_at: int) -> None:
        self._inside = inside
        self._applied: deque[tuple[int, int, tuple[bytes, ...]]] = deque()
        self.delivered_index = resumed_at
        """Everything up to here has been handed up, or is behind the mark."""
        self.announced: int | None = None
        """The epoch in which the listener was told that we lead."""
        self._noop_index = 0
        self._lost: list[int] = []
        self._installed: Mark | None = None
        self.told = LeaderAndEpoch(None, inside.journal.term)
        """Who leads, as it was told last."""

    def applied(self, payloads: tuple[bytes, ...]) -> None:
        """Take an entry from the core."""
        inside = self._inside
        assert inside.core is not None
        index = inside.core.last_applied + 1
        self._applied.append((index, inside.view.term_at(index), payloads))

    def leading(self) -> None:
        """The core leads; its no-op follows. Called from inside the core."""
        self._noop_index = self._inside.view.last + 1

    def leading_no_more(self) -> None:
        """The core stopped leading. Called from inside the core."""
        if self.announced is not None:
            self._lost.append(self.announced)
            self.announced = None

    def jumped(self, mark: Mark) -> None:
        """The log begins at a mark now."""
        self._applied.clear()
        self._installed = mark
        self.delivered_index = mark.index

    def tell_lost(self) -> bool:
        """Tell of leadership lost; True when there was something to tell."""
        lost, self._lost = self._lost, []
        for epoch in lost:
            self._inside.listener.on_leadership_lost(epoch)
        return bool(lost)

    def tell_committed(self) -> None:
        """Hand up what is committed and durable."""
        inside = self._inside
        if self._installed is not None:
            mark, self._installed = self._installed, None
            inside.listener.on_installed(mark)
        assert inside.core is not None
        last_applied = inside.core.last_applied
        if last_applied <= self.delivered_index:
            return
        durable = self.limit()
        applied = self._applied
        while applied and applied[0][0] <= durable and not inside.stopped:
            index, epoch, payloads = applied.popleft()
            self.delivered_index = index
            inside.listener.on_committed(index, epoch, payloads)
        reached = min(last_applied, durable, applied[0][0] - 1 if applied else last_applied)
        self.delivered_index = max(self.delivered_index, reached)

    def limit(self) -> int:
        """Return the index up to which our own copy bears what we hand up."""
        return self._inside.view.durable

    def tell_leading(self) -> None:
        """Tell that we lead, once our no-op is applied and handed up."""
        inside = self._inside
        core = inside.core
        assert core is not None
        if (
            core.role is Role.LEADER
            and self.announced is None
            and self.delivered_index >= self._noop_index
        ):
            self.announced = core.term
            inside.listener.on_leadership(core.term)

    def tell_leader(self, now: LeaderAndEpoch) -> None:
        """Tell who leads, when that has changed and the epoch is durable.

        An epoch that a loss of power could take back must not be seen by anyone.
        """
        inside = self._inside
        if now != self.told and inside.outbox.is_durable(inside.journal.position_of_vote):
            self.told = now
            self._inside.listener.on_leader_changed(now)
