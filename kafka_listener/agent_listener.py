"""The Kafka listener of a broker's agent: what it answers itself, and what it passes on (ADR 0074).

The agent answers from its image what a client asks any broker. Changes, and reads that must be the
newest, go to the active controller in the name of the client (KIP-590): `ask` is the agent's own
way to the controllers, with the agent's credentials.

Rule: an agent whose lease is over neither answers nor passes on.
"""

from collections.abc import Mapping

from broker_agent.agent import AgentCore
from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.asking.asking import Asking, AskRoute
from kafka_listener.asking.request import Handler
from kafka_listener.clients.agent_handlers import agent_handlers
from metadata.configs.effective import OwnConfigs
from metadata.image import MetadataImage
from runtime.clock import Clock


class AgentImage:
    """An agent's image, for as long as the agent may serve."""

    def __init__(self, agent: AgentCore, configs: Mapping[str, str]) -> None:
        """`configs`: Kafka's keys in the agent's own settings."""
        self._agent = agent
        self._own_configs = OwnConfigs(configs, agent.config.broker_id)

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self._agent.config.cluster_id

    @property
    def node_id(self) -> int:
        """The number of this broker."""
        return self._agent.config.broker_id

    @property
    def image(self) -> MetadataImage:
        """The newest image that readers may see."""
        return self._agent.image

    @property
    def own_configs(self) -> OwnConfigs:
        """Kafka's keys in this broker's own settings."""
        return self._own_configs

    def refusal(self) -> str:
        """Return why the broker may not answer at this moment; empty: it may."""
        if self._agent.may_serve():
            return ""
        return f"this broker is {self._agent.state.value}: {self._agent.reason}; ask another"


def agent_listener_handlers(
    agent: AgentCore, ask: AskRoute, clock: Clock, configs: Mapping[str, str]
) -> Mapping[int, Handler]:
    """Return the handlers of an agent's listener by api key.

    `ask`: `AgentApi.handle` of this agent. `configs`: Kafka's keys in the agent's own settings.
    """
    forwarded = admin_handlers(Asking(ask))
    return {**forwarded, **agent_handlers(AgentImage(agent, configs), clock)}
