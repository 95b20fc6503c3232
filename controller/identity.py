"""Which broker process a request comes from, checked before its contact is noted.

Rule: nobody keeps another's session alive. A request counts as a broker's only if it is for this
cluster, its caller may speak for that broker, and broker epoch and incarnation are those of the
registration. What a request says of itself is believed in nothing before that.
"""

from typing import NamedTuple

from controller.managers.brokers import registered
from metadata.errors import ErrorCode, QuorateError
from metadata.image import BrokerRegistration, MetadataImage
from runtime.requests import Caller


class Claim(NamedTuple):
    """What a request says of where it comes from."""

    broker_id: int
    broker_epoch: int
    cluster_id: str | None
    """None: not said. Agents of release 0.1 don't say it where they load snapshots."""
    incarnation_id: bytes | None
    """None: not said, likewise. The epoch is one incarnation's anyway."""


class Identity:
    """Judges claims for one cluster."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id

    def check_claim(self, caller: Caller, claim: Claim) -> None:
        """Raise QuorateError where no image is needed to see that the claim is wrong."""
        check_speaks_for(caller, claim.broker_id)
        if claim.cluster_id is not None and claim.cluster_id != self._cluster_id:
            raise QuorateError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"this is cluster {self._cluster_id}, broker {claim.broker_id} belongs to "
                f"{claim.cluster_id[:100]}: point it at its own controllers, or start it with an "
                "empty folder",
            )


def check_speaks_for(caller: Caller, broker_id: int) -> None:
    """A certificate of a broker speaks for that broker only, one of a controller for none.

    Raises QuorateError CLUSTER_AUTHORIZATION_FAILED.
    """
    role, _, name = caller.principal.partition(":")
    own = role == "Broker" and name == str(broker_id)
    if caller.method == "certificate" and role != "User" and not own:
        raise QuorateError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{caller.principal} can't speak for broker {broker_id}: use the certificate "
            f"that was made for it (broker://<cluster id>/{broker_id})",
        )


def check_process(image: MetadataImage, claim: Claim) -> None:
    """The claim is the registered process's. Raises QuorateError STALE_BROKER_EPOCH."""
    broker = registered(image, claim.broker_id, claim.broker_epoch)
    if claim.incarnation_id is not None:
        check_incarnation(broker, claim.incarnation_id)


def check_incarnation(broker: BrokerRegistration, incarnation_id: bytes) -> None:
    """The registration is that process's. Raises QuorateError STALE_BROKER_EPOCH."""
    if broker.incarnation_id != incarnation_id:
        raise QuorateError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"epoch {broker.broker_epoch} of broker {broker.broker_id} belongs to another "
            "process; stop this one",
        )


def is_process(image: MetadataImage, claim: Claim) -> bool:
    """Tell whether the claim is the registered process's."""
    try:
        check_process(image, claim)
    except QuorateError:
        return False
    return True
