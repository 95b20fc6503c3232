"""Ends a controlled shutdown that no controller has granted in time.

Rule: there are two limits, and the first one to pass ends the shutdown. `stop_limit_ms` bounds the
whole shutdown. `stop_silence_ms`, or two heartbeats if that is longer, bounds the time without an
answer of the active controller. Only that controller can move the leaders to other brokers, so
without it waiting is in vain. A failover takes less time than this limit.
"""

from collections.abc import Callable

from broker_agent.config import AgentConfig
from runtime.clock import Clock, Timer


class StopLimits:
    """Watches one agent's shutdown, from `begin` to `end`."""

    def __init__(self, config: AgentConfig, clock: Clock, on_passed: Callable[[str], None]) -> None:
        """`on_passed` is called at most once, with the reason for the end."""
        self._limit_s = config.stop_limit_ms / 1000
        # A controller may hold an answer for one heartbeat.
        self._silence_s = max(config.stop_silence_ms, 2 * config.heartbeat_ms) / 1000
        self._clock = clock
        self._on_passed = on_passed
        self._timer: Timer | None = None
        self._began_at = 0.0
        self._heard_at = 0.0

    def begin(self) -> None:
        """The host has asked to stop: both limits count from now."""
        self._began_at = self._heard_at = self._clock.monotonic()
        self._look()

    def heard(self) -> None:
        """The active controller has answered."""
        self._heard_at = self._clock.monotonic()

    def end(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._clock.monotonic()
        limit_left_s = self._began_at + self._limit_s - now
        silence_left_s = self._heard_at + self._silence_s - now
        if limit_left_s <= 0:
            self._on_passed(
                f"the controlled shutdown was not finished after {self._limit_s:g} s "
                "(stop_limit_ms); leaders may not have moved"
            )
        elif silence_left_s <= 0:
            self._on_passed(
                f"the controlled shutdown was cut short: no active controller has answered for "
                f"{self._silence_s:g} s; leaders may not have moved"
            )
        else:
            self._timer = self._clock.call_later(min(limit_left_s, silence_left_s), self._look)
