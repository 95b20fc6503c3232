"""What the agent calls in the process in which it runs."""

from typing import Protocol

from broker_agent.states import BrokerState


class Host(Protocol):
    """The process in which the agent runs. The agent calls these methods."""

    def on_state(self, state: BrokerState, reason: str) -> None:
        """The state or the right to serve changed; ask `AgentCore.may_serve` for the right."""

    def on_gone(self, reason: str, *, orderly: bool) -> None:
        """The agent has ended: end the process.

        `orderly` is true after a shutdown that the host asked for and that was completed.
        """
