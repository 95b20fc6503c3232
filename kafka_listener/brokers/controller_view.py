"""What the handlers of brokers need of the controller beside its routes."""

from typing import Protocol

from metadata.image import MetadataImage


class ControllerView(Protocol):
    """The controller that the listener belongs to. `controller.controller.Controller` is one."""

    @property
    def image(self) -> MetadataImage:
        """The committed image."""

    @property
    def active(self) -> bool:
        """This controller leads, and the begin of its epoch is committed."""
