"""Chooses the standby that gets an agent's heartbeats for the leader (ADR 0048).

Rule: only a broker that is in service and wants nothing else asks a standby, and only after the
leader has answered it. After any error it asks the leader, and no standby for a while. So a standby
that is late, is stopped, or takes no heartbeats costs one request in that time. Broker ids are
divided among the configured controllers; the leader may be the one that an id falls to.
"""

from typing import Final

from runtime.clock import Clock
from runtime.randomness import Random

PAUSE_S: Final = 20.0
"""After an error. A random part of up to a half is added, so that brokers don't come together."""


class StandbyChoice:
    """Whether the next heartbeat goes to a standby, and to which one."""

    def __init__(
        self, controllers: tuple[str, ...], broker_id: int, clock: Clock, random: Random
    ) -> None:
        self.own_url = sorted(controllers)[broker_id % len(controllers)]
        self._clock = clock
        self._random = random
        self._not_before = 0.0
        self._leader_answered = False

    def url(self, leader_url: str) -> str:
        """Return the controller that a heartbeat of a broker in service goes to."""
        paused = self._clock.monotonic() < self._not_before
        return self.own_url if self._leader_answered and not paused else leader_url

    def answered(self) -> None:
        """The leader has answered this process."""
        self._leader_answered = True

    def failed(self) -> None:
        """The standby gave no usable answer."""
        pause_s = PAUSE_S * (1 + 0.5 * self._random.random())
        self._not_before = self._clock.monotonic() + pause_s
