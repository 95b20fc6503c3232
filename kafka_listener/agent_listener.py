"""The Kafka listener of a broker's agent: what it answers itself, and what it passes on (ADR 0074).

The agent answers from its image what a client asks any broker. Changes, and reads that must be the
newest, go to the active controller in the name of the client (KIP-590): `ask` is the agent's own
way to the controllers, with the agent's credentials. While no controller leads, it asks again.

Rule: an agent whose lease is over neither answers nor passes on. Where rights are enforced, it
judges what it answers itself by the entries of its image, by the code that controllers judge with
(`controller.access`). A person who has a pseudonym is judged by that (`broker_agent.people`). The
controllers judge what the agent passes on.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker_agent.agent import AgentCore
from broker_agent.opened_secrets import OpenedToken, Salting, Secrets
from broker_agent.people import AgentPeople
from controller.access.asker_rights import AskerRights, rights_of
from controller.access.guard import AccessGuard, Asker
from controller.access.request_needs import RequestFacts
from controller.access.rights import AnyOf
from controller.access.route_access import RouteAccess
from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.admin.quorum import describe_quorum
from kafka_listener.asking.asking import Asking, AskRoute
from kafka_listener.asking.error_codes import kafka_code
from kafka_listener.asking.needed_rights import guarded_on_agent, refused_part
from kafka_listener.asking.request import Answer, Handler, KafkaFailure, KafkaRequest
from kafka_listener.brokers.broker_ids import BrokerIds
from kafka_listener.clients.agent_handlers import agent_handlers
from kafka_listener.serving.login_refused import LoginRefusedError
from kafka_listener.serving.scram_exchange import ScramKeys
from metadata.acl_rules import Enforcement
from metadata.configs.effective import OwnConfigs
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.records import ScramMechanism
from runtime.clock import Clock
from runtime.http.requests import Caller, Request

DESCRIBE_QUORUM: Final = 55
UNREGISTER_BROKER: Final = 64


class AgentImage:
    """An agent's image, for as long as the agent may serve."""

    def __init__(
        self,
        agent: AgentCore,
        configs: Mapping[str, str],
        guard: AccessGuard,
        people: AgentPeople,
    ) -> None:
        """`configs`: Kafka's keys in the agent's own settings."""
        self._agent = agent
        self._guard = guard
        self._people = people
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

    def rights(self, request: KafkaRequest) -> AskerRights | None:
        """Return what the client may do, by the newest entries; None: everything.

        Raises KafkaFailure for a client whom the agent can't judge.
        """
        if self._guard.enforcement is not Enforcement.ON:
            return None
        try:
            asker = self._asker(request.caller)
        except LogbergError as error:
            raise KafkaFailure(kafka_code(error), error.message) from error
        return rights_of(self._guard, self.image.acls, asker)

    def refused_part(self, request: KafkaRequest, need: AnyOf) -> LogbergError | None:
        """Judge a part of a request; None: it is allowed."""
        return refused_part(request, need, self.judge)

    def judge(
        self, name: str, access: RouteAccess | None, request: Request, message: Any
    ) -> LogbergError | None:
        """Judge a request that is answered here; None: it is allowed."""
        if self._guard.off:
            return None
        try:
            asker = self._asker(request.caller)
        except LogbergError as error:
            self._guard.tell(name, Asker(request.caller.principal, request.caller.address), error)
            return self._guard.enforced(error)
        facts = RequestFacts(asker.principal, {}, {}, message)
        return self._guard.declared(name, access, asker, facts).refusal(self.image)

    def refusal(self) -> str:
        """Return why the broker may not answer at this moment; empty: it may."""
        if self._agent.may_serve():
            return ""
        return f"this broker is {self._agent.state.value}: {self._agent.reason}; ask another"

    def _asker(self, caller: Caller) -> Asker:
        """Raises LogbergError for a client whom the agent can't judge."""
        return Asker(self._people.principal_of(caller), caller.address)


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

    def salting(self, user: str, mechanism: ScramMechanism) -> Salting:
        """Return what a login is told first, whether or not there is such a user.

        Raises SealingError and LoginRefusedError.
        """
        self._check_serves()
        return self._secrets.salting(user, mechanism)

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
    guard: AccessGuard,
    people: AgentPeople,
    on_defect: Callable[[KafkaRequest, Exception], None] = lambda _request, _error: None,
) -> Mapping[int, Handler]:
    """Return the handlers of an agent's listener by api key.

    `ask`: the agent's way to the controllers. `configs`: Kafka's keys in the agent's own settings.
    `guard` judges clients, by the principals that `people` says.
    `on_defect` hears of an exception while a reply was turned into Kafka's answer.
    """
    asking = Asking(ask, clock, on_defect)

    def quorum(request: KafkaRequest, answer: Answer) -> None:
        describe_quorum(AdminCall(asking, request, answer), clock.wall_ms)

    source = AgentImage(agent, configs, guard, people)
    handlers: dict[int, Handler] = {
        **admin_handlers(asking),
        DESCRIBE_QUORUM: quorum,
        UNREGISTER_BROKER: BrokerIds(asking).unregister,
        **agent_handlers(source, clock),
    }
    return {key: guarded_on_agent(key, handler, source.judge) for key, handler in handlers.items()}
