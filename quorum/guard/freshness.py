"""How current what was delivered is: a moment of our own clock from which nothing is missing.

Rule: nothing is current because a message has just arrived, for it may have been on its way, or
in a socket of ours, for long. Every digest carries the sender's clock and gives back the newest
reading of ours that it had seen (its *echo*), so whoever gets it knows a moment before which it
was not sent, on his own clock.

A leader was surely the only one at the latest moment that the echoes of a majority, in its own
term, are not older than: whoever is elected later has a voice out of that majority, given after
its echo. All that anybody was told by then it has delivered. It sends, with its digests, how long
ago that moment is and how far it has delivered; a follower that has delivered as much was current
as long before the echo. So an age is never less than it is, whatever is slow, paused or cut off,
as far as two clocks run equally fast while a digest is under way.
"""

from collections import deque
from typing import NamedTuple

from quorum.guard.context import NodeContext
from quorum.guard.delivery import Delivery
from quorum.guard.replicas import PeerReplica
from quorum.raft.core import Role
from quorum.wire.frames import Frame

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
    """What one node knows of how current it is."""

    def __init__(self, context: NodeContext, delivery: Delivery) -> None:
        self._context = context
        self._delivery = delivery
        self._began_at = context.now
        self._heard: dict[int, int] = {}
        """The newest reading of a peer's clock, while its link lasts."""
        self._echoes: dict[int, _Echo] = {}
        """Of voters whose voice counts: the newest reading of ours that they gave back."""
        self._waiting: deque[_Waiting] = deque()
        """As a follower: once so much is delivered, we were current then."""
        self._current_at: float | None = None

    def fields_for(self, node_id: int) -> tuple[int, int, int, int, bool]:
        """Return what a digest to a peer says beside the digest: see `quorum.wire.frames`."""
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

    def heard(self, replica: PeerReplica, frame: Frame) -> None:
        """Take a digest's fields."""
        if not replica.is_voter:
            # It gets its echo and no more: neither its age nor its voice says anything of ours.
            self._heard[replica.node_id] = frame[4]
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
        """Note what the leader of this term says. What is left of another term holds nothing up."""
        core, waiting = self._context.core, self._waiting
        if core is None or core.leader != replica.node:
            return
        while waiting and waiting[0].term != term:
            waiting.popleft()
        if len(waiting) < _REMEMBERED:
            waiting.append(_Waiting(term, index, moment))

    def link_down(self, node_id: int) -> None:
        """A peer's clock may begin anew."""
        self._heard.pop(node_id, None)

    @property
    def current_at(self) -> float | None:
        """The latest moment at which all that anybody had been told is delivered here by now.

        Monotonic seconds; None: not known since we started.
        """
        self._reach(self._led_at())
        while self._waiting and self._waiting[0].delivered <= self._delivery.delivered_index:
            self._reach(self._waiting.popleft().at)
        return self._current_at

    def _reach(self, moment: float | None) -> None:
        if moment is not None and (self._current_at is None or moment > self._current_at):
            self._current_at = moment

    def _led_at(self) -> float | None:
        """The latest moment at which we surely led; None while we don't lead, or have yet to."""
        context = self._context
        core = context.core
        if core is None or core.role is not Role.LEADER or self._delivery.announced != core.term:
            return None
        moments = [echo.at for echo in self._echoes.values() if echo.term == core.term]
        moments = sorted([*moments, context.now], reverse=True)
        majority = context.formation.majority()
        return moments[majority - 1] if len(moments) >= majority else None


def _us(seconds: float) -> int:
    return int(seconds * US)
