"""The Kafka listener of a controller: joins the handlers of all rooms (ADR 0070).

The listener is a client of the controller's own routes, in the same process. Only what Kafka's raft
client asks, and what describes the node itself, is read from the controller directly.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from structlog.typing import FilteringBoundLogger

from controller.access.asker_rights import AskerRights
from controller.access.rights import AnyOf
from controller.config import ControllerConfig
from controller.controller import Controller
from kafka_listener.admin.handlers import admin_handlers
from kafka_listener.asking.asking import ON_BEHALF_OF, Asking
from kafka_listener.asking.needed_rights import guarded, refused_part
from kafka_listener.asking.refused_brokers import RefusedBrokers
from kafka_listener.asking.request import Handler, KafkaRequest
from kafka_listener.brokers.handlers import broker_handlers
from kafka_listener.clients.controller_handlers import controller_view_handlers
from kafka_listener.quorum_requests.handlers import QuorumRequests
from kafka_listener.serving.api_versions import FeatureVersions
from kafka_listener.serving.image_features import feature_versions
from metadata.acl_rules import Enforcement
from metadata.configs.effective import OwnConfigs
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.http.requests import Request

OnDefect = Callable[[KafkaRequest, Exception], None]


class ControllerListener:
    """What one controller answers to Kafka's brokers and administrators."""

    def __init__(
        self,
        controller: Controller,
        config: ControllerConfig,
        *,
        clock: Clock,
        disk: Disk,
        log: FilteringBoundLogger,
        on_defect: OnDefect = lambda _request, _error: None,
    ) -> None:
        """Make it before `controller` starts. `disk` is the controller's folder."""
        self._controller = controller
        refused = RefusedBrokers(log)
        self.quorum_requests = QuorumRequests(controller, config, clock, disk, log, refused)
        asking = Asking(controller.handle, clock, on_defect)
        handlers: dict[int, Handler] = {
            **self.quorum_requests.handlers(),
            **admin_handlers(asking),
            **controller_view_handlers(ControllerNode(controller, config), clock),
        }
        judged: dict[int, Handler] = {}
        handlers |= broker_handlers(
            controller,
            controller.handle,
            asking,
            judged.get,
            refused,
            cluster_id=config.cluster_id,
            require_authentication=config.brokers_prove_themselves,
        )
        for key, handler in handlers.items():
            judged[key] = guarded(
                key,
                handler,
                controller.access_refusal,
                enforced=config.authorization == Enforcement.ON,
            )
        self.handlers: Mapping[int, Handler] = MappingProxyType(judged)

    def features(self) -> FeatureVersions:
        """Return what ApiVersions says about features."""
        return feature_versions(self._controller.image)

    def stop(self) -> None:
        """Project no more."""
        self.quorum_requests.on_stop()


class ControllerNode:
    """A controller as the handlers for clients see it."""

    def __init__(self, controller: Controller, config: ControllerConfig) -> None:
        self._controller = controller
        self._config = config
        self._own_configs = OwnConfigs(config.configs, config.node_id)

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self._config.cluster_id

    @property
    def node_id(self) -> int:
        """The number of this controller."""
        return self._config.node_id

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._controller.image

    @property
    def own_configs(self) -> OwnConfigs:
        """Kafka's keys in this controller's own settings."""
        return self._own_configs

    @property
    def leader_id(self) -> int:
        """The controller that leads the quorum; -1: none is known."""
        leader = self._controller.quorum.leader_and_epoch().leader
        return -1 if leader is None else leader

    def rights(self, request: KafkaRequest) -> AskerRights | None:
        """Return what the client may do; None: everything."""
        claimed = {ON_BEHALF_OF: request.on_behalf_of} if request.on_behalf_of else {}
        return self._controller.asker_rights(
            Request("", "", headers=claimed, caller=request.caller)
        )

    def refused_part(self, request: KafkaRequest, need: AnyOf) -> LogbergError | None:
        """Judge a part of a request; None: it is allowed."""
        return refused_part(request, need, self._controller.access_refusal)

    def refusal(self) -> str:
        """Return why it may not answer: never, Kafka's standbys describe, too."""
        return ""
