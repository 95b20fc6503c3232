"""The Kafka listener of a broker's agent, for its own process and for combined mode (ADR 0074).

Rule: with `[tls]` every client must log in: by certificate, or by SASL. The agent opens the log's
SCRAM credentials with the cluster key. It has bearer tokens checked by the controllers, and passes
them on. Without `[tls]` nobody can show who they are, and the controllers decide about anonymous
callers, as for the agent's HTTP port. What the agent answers itself, its `authorization` judges.
"""

import ssl
from collections.abc import Callable

from broker_agent.own_server import LentParts, OtherListener
from controller.access.guard import AccessGuard
from kafka_listener.agent_listener import AgentCredentials, agent_listener_handlers
from kafka_listener.asking.repeated_ask import RepeatedAsk
from kafka_listener.serving.image_features import feature_versions
from kafka_listener.serving.logins import Authenticate, Logins
from kafka_listener.serving.passed_tokens import PassedPlainExchange, passing_tokens
from logberg.processes import process_metrics
from logberg.processes.kafka_door import DOOR, DoorSockets, KafkaDoor, note_defects
from logberg.processes.settings.kafka_settings import AgentKafkaSettings
from metadata.credentials import judge_access_token
from runtime.sockets.credentials import ShownToken

TOKEN_CHECK_S = 5.0
"""How long a login by PLAIN waits for a controller that can check the token."""


def agent_door(
    settings: AgentKafkaSettings,
    address: tuple[str, int],
    authenticate: Authenticate,
    *,
    insecure_network: bool,
) -> Callable[[LentParts, ssl.SSLContext | None], OtherListener]:
    """Return what makes an agent's door. `address`: where it listens."""

    def make(lent: LentParts, tls: ssl.SSLContext | None) -> KafkaDoor:
        clock, random = lent.clock, lent.random
        ask = passing_tokens(lent.handle)
        check_tokens = RepeatedAsk(ask, clock, random, TOKEN_CHECK_S)

        def says(token: ShownToken) -> bool | None:
            judged = judge_access_token(lent.core.image, token.digest, clock.wall_ms())
            return None if judged is None else not isinstance(judged, str)

        logins = Logins(
            authenticate,
            AgentCredentials(lent.core, lent.secrets),
            random,
            mechanisms=settings.sasl_mechanisms,
            required=tls is not None,
            plain=lambda client: PassedPlainExchange(check_tokens, client, says),
        )
        http = lent.http
        door = KafkaDoor(
            agent_listener_handlers(
                lent.core,
                RepeatedAsk(ask, clock, random),
                clock,
                settings.configs,
                AccessGuard(lent.core.config, http.refusals),
                lent.people,
                note_defects(lent.log),
            ),
            lambda: feature_versions(lent.core.image),
            logins,
            DoorSockets(
                settings.listener_name,
                address,
                tls,
                insecure_network,
                http.budget,
                http.refusals,
                clock,
                lent.log,
            ),
        )
        door.show(lent.registry)
        process_metrics.declare_doors(
            lent.registry,
            {"http": http.admission, DOOR: door.server.admission},
            http.budget,
            http.refusals,
        )
        return door

    return make
