"""The Kafka listener of a broker's agent: what it answers itself, and what it passes on (ADR 0074).

The agent answers from its image what a client asks any broker. Changes, and reads that must be the
newest, go to the active controller in the name of the client (KIP-590): `ask` is the agent's own
way to the controllers, with the agent's credentials. While no controller leads, it asks again.

Rule: an agent whose lease is over neither answers nor passes on.
"""

from collections.abc import Callable, Mapping
from typing import Final

from broker_agent.agent import AgentCore
from broker_agent.opened_secrets import OpenedToken, Secrets
from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.admin.quorum import describe_quorum
from kafka_listener.asking.asking import Asking, AskRoute
from kafka_listener.asking.request import Answer, Handler, KafkaRequest
from kafka_listener.brokers.broker_ids import BrokerIds
from kafka_listener.clients.agent_handlers import agent_handlers
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.scram_exchange import ScramKeys
from metadata.configs.effective import OwnConfigs
from metadata.image import MetadataImage
from metadata.records import ScramMechanism
from runtime.clock import Clock

DESCRIBE_QUORUM: Final = 55
UNREGISTER_BROKER: Final = 64


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


class AgentCredentials:
    """The log's credentials and delegation tokens, for as long as the agent may serve.

    An older image may hold a credential that was deleted meanwhile (ADR 0040).
    """

    def __init__(self, agent: AgentCore, secrets: Secrets) -> None:
        self._agent = agent
        self._secrets = secrets

    def scram(self, user: str, mechanism: ScramMechanism) -> ScramKeys | None:
        """Return a user's credential; None: there is none.

        Raises SealingError and LoginRefusedError.
        """
        self._check_serves()
        return self._secrets.scram(user, mechanism)

    def token(self, token_id: str) -> OpenedToken | None:
        """Return a delegation token; None: there is none. It may have expired.

        Raises SealingError and LoginRefusedError.
        """
        self._check_serves()
        return self._secrets.token(token_id)

    def _check_serves(self) -> None:
        if not self._agent.may_serve():
            raise LoginRefusedError("this broker is not in service; ask another")


def agent_listener_handlers(
    agent: AgentCore,
    ask: AskRoute,
    clock: Clock,
    configs: Mapping[str, str],
    on_defect: Callable[[KafkaRequest, Exception], None] = lambda _request, _error: None,
) -> Mapping[int, Handler]:
    """Return the handlers of an agent's listener by api key.

    `ask`: the agent's way to the controllers. `configs`: Kafka's keys in the agent's own settings.
    `on_defect` hears of an exception while a reply was turned into Kafka's answer.
    """
    asking = Asking(ask, clock, on_defect)

    def quorum(request: KafkaRequest, answer: Answer) -> None:
        describe_quorum(AdminCall(asking, request, answer), clock.wall_ms)

    return {
        **admin_handlers(asking),
        DESCRIBE_QUORUM: quorum,
        UNREGISTER_BROKER: BrokerIds(asking).unregister,
        **agent_handlers(AgentImage(agent, configs), clock),
    }
