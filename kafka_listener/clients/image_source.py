"""Where the answers to clients come from: an agent's image, or a controller's.

Rule: an agent whose lease is over may not answer, because its image may be old. `refusal` says so,
and each handler asks for it directly before it answers.
"""

from typing import Protocol

from controller.access.asker_rights import AskerRights
from controller.access.rights import AnyOf
from kafka_listener.asking.request import KafkaRequest
from metadata.configs.effective import OwnConfigs
from metadata.errors import LogbergError
from metadata.image import MetadataImage


class ImageSource(Protocol):
    """A node that holds an image of the metadata."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""

    @property
    def node_id(self) -> int:
        """The number of this broker or controller."""

    @property
    def image(self) -> MetadataImage:
        """The newest image that readers may see."""

    @property
    def own_configs(self) -> OwnConfigs:
        """Kafka's keys in this node's own settings."""

    def rights(self, request: KafkaRequest) -> AskerRights | None:
        """Return what the client may do, by the newest entries; None: everything."""

    def refused_part(self, request: KafkaRequest, need: AnyOf) -> LogbergError | None:
        """Judge a part of a request. Returns why it is refused, which counts as an attempt."""

    def refusal(self) -> str:
        """Return why the node may not answer at this moment; empty: it may."""


class ControllerSource(ImageSource, Protocol):
    """A controller."""

    @property
    def leader_id(self) -> int:
        """The controller that leads the quorum, as far as known; -1: none is known."""
