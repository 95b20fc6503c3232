"""Computes how fresh the delivered entries are: a time on our clock from which none is missing.

Rule: the arrival of a message proves nothing, because the message may have waited for long on its
way or in our own socket. So every digest carries the sender's clock, and returns the newest reading
of the receiver's clock that the sender has seen (the *echo*). The receiver then knows, on its own
clock, a time before which the digest was not sent.

A leader takes the echoes of its term and the latest time that a majority of them reaches. It was
the only leader at that time: any later leader needs the vote of a member of that majority, and the
member gives that vote after its echo. So the leader had delivered everything that any client had
been told by then. Its digests say how long ago that time is, and how far it has delivered. A
follower that has delivered as much was fresh at the echo's time minus that age.

The computed age is therefore never too small, whatever is slow, paused or cut off, as long as two
clocks run equally fast while a digest is under way.
"""

from collections import deque
from typing import NamedTuple

from quorum.guard.context import NodeContext
from quorum.guard.delivery import Delivery
from quorum.guard.replicas import PeerReplica
from quorum.raft.core import Role
from quorum.wire.frame_types import DigestFrame

US = 1_000_000
NOTHING = -1
_REMEMBERED = 64


class _Echo(NamedTuple):
    term: int
    at: float


class _Waiting(NamedTuple):
    term: int
    delivered: int
    at: float


class DeliveryFreshness:
    """How fresh this node's delivered entries are."""

    def __init__(self, context: NodeContext, delivery: Delivery) -> None:
        self._context = context
        self._delivery = delivery
        self._began_at = context.now
        self._heard: dict[int, int] = {}
        """The newest reading of each peer's clock, while its link lasts."""
        self._echoes: dict[int, _Echo] = {}
        """The newest reading of our clock that each voter returned, if its vote counts."""
        self._waiting: deque[_Waiting] = deque()
        """On a follower: once so much is delivered, we were fresh at that time."""
        self._current_at: float | None = None

    def fields_for(self, node_id: int) -> tuple[int, int, int, int, bool]:
        """Return the fields that a DIGEST frame to a peer has after the digest."""
        context = self._context
        led_at = self._led_at()
        age_us = NOTHING if led_at is None else _us(context.now - led_at)
        return (
            _us(context.now),
            self._heard.get(node_id, NOTHING),
            self._delivery.delivered_index,
            age_us,
            context.may_vote,
        )

    def heard(self, replica: PeerReplica, frame: DigestFrame) -> None:
        """Take a digest's fields."""
        if not replica.is_voter:
            # We return its echo and use nothing else: an observer says nothing about our freshness.
            self._heard[replica.node_id] = frame.clock_us
            return
        _, term, _, _, clock_us, echo_us, index, age_us, counted = frame
        self._heard[replica.node_id] = max(clock_us, self._heard.get(replica.node_id, NOTHING))
        echo = echo_us / US
        if not self._began_at <= echo <= self._context.now:
            return
        if term != self._context.term:
            return
        if counted:
            before = self._echoes.get(replica.node_id)
            if before is None or (before.term, before.at) < (term, echo):
                self._echoes[replica.node_id] = _Echo(term, echo)
        if age_us != NOTHING:
            self._wait_for(replica, term, index, echo - age_us / US)

    def _wait_for(self, replica: PeerReplica, term: int, index: int, moment: float) -> None:
        """Note what the leader of this term says, and drop what an earlier leader said."""
        core, waiting = self._context.core, self._waiting
        if core is None or core.leader != replica.node:
            return
        while waiting and waiting[0].term != term:
            waiting.popleft()
        if len(waiting) < _REMEMBERED:
            waiting.append(_Waiting(term, index, moment))

    def on_voters_changed(self) -> None:
        """Forget the echoes: other voters have to return them."""
        self._echoes.clear()

    def link_down(self, node_id: int) -> None:
        """Forget a peer's clock: it may begin anew."""
        self._heard.pop(node_id, None)

    @property
    def current_at(self) -> float | None:
        """The latest time such that everything acknowledged before it is delivered here.

        Monotonic seconds; None: not known since the start.
        """
        self._reach(self._led_at())
        while self._waiting and self._waiting[0].delivered <= self._delivery.delivered_index:
            self._reach(self._waiting.popleft().at)
        return self._current_at

    def _reach(self, moment: float | None) -> None:
        if moment is not None and (self._current_at is None or moment > self._current_at):
            self._current_at = moment

    def _led_at(self) -> float | None:
        """The latest time at which we were surely the only leader; None while we don't lead."""
        context = self._context
        core = context.core
        if core is None or core.role is not Role.LEADER or self._delivery.announced != core.term:
            return None
        moments = [echo.at for echo in self._echoes.values() if echo.term == core.term]
        moments = sorted([*moments, context.now], reverse=True)
        majority = context.voters.majority()
        return moments[majority - 1] if len(moments) >= majority else None


def _us(seconds: float) -> int:
    return int(seconds * US)
