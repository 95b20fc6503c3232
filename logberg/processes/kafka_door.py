"""The Kafka listener of a controller's process: its sessions on a real socket.

Rule: who may log in, the memory of strangers and the lines about refusals are those of the whole
process, not of one port.
"""

import ssl
from collections import Counter
from collections.abc import Mapping

from structlog.typing import FilteringBoundLogger

from broker_agent.opened_secrets import Secrets
from controller.config import ControllerConfig
from controller.controller import Controller
from kafka_listener.listener import ControllerListener
from kafka_listener.serving.logins import Authenticate, Logins
from kafka_listener.serving.service import KafkaService
from kafka_listener.serving.session import KafkaSession
from logberg.processes.kafka_settings import KafkaSettings
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.metrics import Registry
from runtime.randomness import Random
from runtime.sessions.server import SessionServer
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.refusals import Refusals

DOOR = "kafka"


class KafkaDoor:
    """Listener, service and socket server of one controller."""

    def __init__(
        self,
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
    ) -> None:
        """Make it before `controller` starts. `address`: where the server listens."""
        self._listener = ControllerListener(
            controller,
            config,
            clock=clock,
            disk=disk,
            log=log,
            on_defect=lambda request, error: log.error(
                "kafka_answer_failed", api_key=request.api_key, error=repr(error)
            ),
        )
        self._service = KafkaService(
            self._listener.handlers,
            self._listener.features,
            Logins(
                authenticate,
                Secrets(lambda: controller.image, config.cluster_key),
                random,
                mechanisms=settings.sasl_mechanisms,
                required=config.require_authentication,
            ),
            listener=settings.listener_name,
            clock=clock,
            refusals=refusals,
            budget=budget,
        )
        self.server = SessionServer(
            lambda link, peer: KafkaSession(self._service, link, peer),
            *address,
            door=DOOR,
            tls=tls,
            insecure_network=insecure_network,
            budget=budget,
            refusals=refusals,
            log=log,
        )

    def start(self) -> None:
        """Listen. Raises InsecureListenerError, and OSError that says what to do."""
        self.server.start()

    def stop(self) -> None:
        """End all connections."""
        self.server.stop()
        self._listener.stop()

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


def _by_name(counts: Counter[str]) -> Mapping[tuple[str, ...], float]:
    return {(name,): float(count) for name, count in counts.items()}
