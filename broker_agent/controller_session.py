"""The broker's session: the agent uses the shorter of its own and the active controller's.

Rule: the controller fences a broker that it has not heard from for a session of the controller's
length. So the lease, and the time for which a fetch may be held, follow the shorter of the two.
"""

import structlog

from broker_agent.config import AgentConfig, lease_s, longest_wait_ms
from broker_agent.lease import Lease

SESSION_DIFFERS = "session_differs"


class ControllerSession:
    """The length of the session, which sets the length of the lease."""

    def __init__(
        self, config: AgentConfig, lease: Lease, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._config = config
        self._lease = lease
        self._log = log
        self._length_ms = config.session_ms

    def follow(self, told_ms: int) -> None:
        """Use the shorter of our session and the controller's, in ms; -1: it named none."""
        length_ms = self._config.session_ms
        if told_ms > 0:
            length_ms = min(length_ms, told_ms)
        if length_ms != self._length_ms:
            self._length_ms = length_ms
            self._log.warning(
                SESSION_DIFFERS, ours_ms=self._config.session_ms, controllers_ms=told_ms
            )
            self._lease.set_length(lease_s(length_ms))

    def held_ms(self) -> int:
        """Return for how many ms the controller may hold a fetch that is sent now.

        At most a heartbeat, and short enough that the answer comes before the lease ends.
        """
        slack_ms = self._config.answer_slack_ms
        longest = longest_wait_ms(self._length_ms, slack_ms)
        # If the session just became shorter, less of the lease is left than `longest` assumes.
        left = int((self._lease.length_s - self._lease.age_s()) * 1000) - slack_ms
        return max(10, min(self._config.heartbeat_ms, longest, left))
