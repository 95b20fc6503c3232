"""The Kafka listener of a process: its sessions on a real socket.

`controller_door` makes that of a controller, `agent_door.agent_door` that of a broker's agent.

Rule: who may log in, the memory of strangers and the lines about refusals are those of the whole
process, not of one port.
"""

import ssl
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from broker_agent.opened_secrets import Secrets
from controller.config import ControllerConfig
from controller.controller import Controller
from kafka_listener.asking.request import Handler, KafkaRequest
from kafka_listener.listener import ControllerListener
from kafka_listener.projection.digest import LogDigest
from kafka_listener.quorum_requests.handlers import QuorumRequests
from kafka_listener.serving.api_versions import FeatureVersions
from kafka_listener.serving.logins import Authenticate, Logins
from kafka_listener.serving.service import KafkaService
from kafka_listener.serving.session import KafkaSession
from logberg.processes.settings.kafka_settings import KafkaSettings
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.sessions.server import SessionServer
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.refusals import Refusals

DOOR = "kafka"


class DoorSockets(NamedTuple):
    """Where a door listens, and what it shares with the process's other ports."""

    listener_name: str
    address: tuple[str, int]
    tls: ssl.SSLContext | None
    insecure_network: bool
    budget: ByteBudget
    refusals: Refusals
    clock: Clock
    log: FilteringBoundLogger


class KafkaDoor:
    """Service and socket server of one process."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        features: Callable[[], FeatureVersions],
        logins: Logins,
        sockets: DoorSockets,
        on_stop: Callable[[], None] = lambda: None,
        show_more: Callable[[Registry], None] = lambda _registry: None,
    ) -> None:
        """`handlers`: by api key. `features` is asked at each ApiVersions.

        `show_more` declares figures that not every listener has.
        """
        self._on_stop = on_stop
        self._show_more = show_more
        self._service = KafkaService(
            handlers,
            features,
            logins,
            listener=sockets.listener_name,
            clock=sockets.clock,
            refusals=sockets.refusals,
            budget=sockets.budget,
        )
        self.server = SessionServer(
            lambda link, peer: KafkaSession(self._service, link, peer),
            *sockets.address,
            door=DOOR,
            tls=sockets.tls,
            insecure_network=sockets.insecure_network,
            budget=sockets.budget,
            refusals=sockets.refusals,
            log=sockets.log,
        )

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""
        self.server.start()

    def stop(self) -> None:
        """End all connections."""
        self.server.stop()
        self._on_stop()

    def reload_tls(self, context: ssl.SSLContext) -> None:
        """Use other certificates for connections that begin from now on."""
        self.server.reload_tls(context)

    def judging(self) -> Generator[None, None, int]:
        """End the connections of callers that would be refused now; return how many. In steps."""
        return self.server.judging()

    def show(self, registry: Registry) -> None:
        """Declare the figures of the listener."""
        registry.read_counter(
            "logberg_kafka_requests_total",
            "Requests in Kafka's protocol, by name",
            lambda: _by_name(self._service.requests),
            ("request",),
        )
        registry.read_counter(
            "logberg_kafka_failures_total",
            "Requests in Kafka's protocol that failed as a whole, by Kafka's name of the error",
            lambda: _by_name(self._service.failures),
            ("error",),
        )
        registry.read_gauge(
            "logberg_kafka_connections",
            "Open connections of the Kafka listener",
            lambda: self.server.connections,
        )
        self._show_more(registry)


def note_defects(log: FilteringBoundLogger) -> Callable[[KafkaRequest, Exception], None]:
    """Return what logs an exception while a reply was turned into Kafka's answer."""
    return lambda request, error: log.error(
        "kafka_answer_failed", api_key=request.api_key, error=repr(error)
    )


def controller_door(
    settings: KafkaSettings,
    address: tuple[str, int],
    controller: Controller,
    config: ControllerConfig,
    authenticate: Authenticate,
    *,
    clock: Clock,
    random: Random,
    disk: Disk,
    tls: ssl.SSLContext | None,
    insecure_network: bool,
    budget: ByteBudget,
    refusals: Refusals,
    log: FilteringBoundLogger,
) -> KafkaDoor:
    """Return a controller's door, before `controller` starts. `address`: where it listens."""
    listener = ControllerListener(
        controller, config, clock=clock, disk=disk, log=log, on_defect=note_defects(log)
    )
    logins = Logins(
        authenticate,
        Secrets(lambda: controller.image, config.cluster_key),
        random,
        mechanisms=settings.sasl_mechanisms,
        required=config.require_authentication,
        now_ms=clock.wall_ms,
        brokers=settings.broker_users,
    )
    sockets = DoorSockets(
        settings.listener_name, address, tls, insecure_network, budget, refusals, clock, log
    )
    return KafkaDoor(
        listener.handlers,
        listener.features,
        logins,
        sockets,
        listener.stop,
        lambda registry: _show_projection(listener.quorum_requests, registry),
    )


def _show_projection(requests: QuorumRequests, registry: Registry) -> None:
    """Declare the figures of a controller's projected log."""
    log = requests.log
    registry.read_gauge(
        "logberg_kafka_projected_end",
        "Up to which offset the log is projected for Kafka's brokers",
        lambda: log.end,
    )
    registry.read_gauge(
        "logberg_kafka_projection_differs",
        "1 while this projected log differs from other controllers', and is not shown",
        lambda: float(bool(requests.exchange.verdict)),
    )
    registry.read_gauge(
        "logberg_kafka_projection_digest",
        "1 for the newest digest of the projected log at the end of 1,024 offsets",
        lambda: _window_end(log.digests.window_ends()),
        ("offset", "digest"),
    )


def _by_name(counts: Counter[str]) -> Mapping[tuple[str, ...], float]:
    return {(name,): float(count) for name, count in counts.items()}


def _window_end(ends: Sequence[LogDigest]) -> Mapping[tuple[str, ...], float]:
    return {(str(end.offset), end.digest.hex()): 1.0 for end in ends[-1:]}
