"""The state of a broker, as its registration and its heartbeat say it.

Rule: a broker's state is derived from its registration and is never stored.
"""

from enum import Enum
from typing import Final, NamedTuple

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.brokers import BrokerRegistration
from metadata.messages import WantedState


class RegisteredState(Enum):
    """A broker's state, derived from its registration."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"
    """Fenced, and told that it may stop."""


OPERATIONS: Final = {
    RegisteredState.FENCED: "FenceBroker",
    RegisteredState.UNFENCED: "UnfenceBroker",
    RegisteredState.CONTROLLED_SHUTDOWN: "BeginControlledShutdown",
    RegisteredState.SHUTDOWN_NOW: "FenceBroker",
}
"""The operation in a batch's envelope, by the state that the batch leads to."""


class Beat(NamedTuple):
    """What a broker reports in a heartbeat."""

    broker_id: int
    broker_epoch: int
    applied_offset: int
    wanted: WantedState


class StateChange(NamedTuple):
    """The state of a broker now, and the one that it should change to."""

    now: RegisteredState
    then: RegisteredState


def state_of(broker: BrokerRegistration) -> RegisteredState:
    """Return the state that follows from the registration alone."""
    if broker.fenced:
        return RegisteredState.FENCED
    if broker.in_controlled_shutdown:
        return RegisteredState.CONTROLLED_SHUTDOWN
    return RegisteredState.UNFENCED


def has_caught_up(broker: BrokerRegistration, applied_offset: int) -> bool:
    """Return whether a broker has applied its own registration.

    The log's end would be a moving target: a broker could stay fenced for ever on a busy cluster.
    """
    return applied_offset > broker.broker_epoch


def registered(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """Return the registration that a request names. Raises LogbergError STALE_BROKER_EPOCH."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        known = "it is not registered" if broker is None else f"its epoch is {broker.broker_epoch}"
        raise LogbergError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} has no epoch {broker_epoch}: {known}; stop this process and start "
            "a new one, which registers",
        )
    return broker
