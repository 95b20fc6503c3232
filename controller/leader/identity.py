"""Checks which broker process a request comes from, before its contact is noted.

Invariant: nobody keeps another process's session alive. A request counts as a broker's only if

- it names this cluster,
- its caller may speak for that broker, and
- its broker epoch and incarnation are those of the registration.

Only a credential that is bound to broker n speaks for it: a certificate with broker://<cluster>/n,
or a token whose principal is Broker:n. Where authentication is off, users and anonymous callers may
speak for any broker. The log then names both, for example User:ANONYMOUS as Broker:7.
"""

from typing import NamedTuple

from controller.managers.broker_states import registered
from metadata.errors import ErrorCode, LogbergError
from metadata.image import BrokerRegistration, MetadataImage
from runtime.http.requests import Caller


class BrokerClaim(NamedTuple):
    """Where a request says that it comes from."""

    broker_id: int
    broker_epoch: int
    cluster_id: str | None
    """None if the request doesn't say. Agents of release 0.1 don't, when they load snapshots."""
    incarnation_id: bytes | None
    """None likewise. The broker epoch identifies the incarnation as well."""


class IdentityCheck:
    """Checks claims for one cluster."""

    def __init__(self, cluster_id: str, *, require_authentication: bool) -> None:
        self._cluster_id = cluster_id
        self._require_authentication = require_authentication

    def check_claim(self, caller: Caller, claim: BrokerClaim) -> None:
        """Check what needs no image. Raises LogbergError.

        Its codes: CLUSTER_AUTHORIZATION_FAILED, INCONSISTENT_CLUSTER_ID.
        """
        self._check_speaks_for(caller, claim.broker_id)
        if claim.cluster_id is not None and claim.cluster_id != self._cluster_id:
            raise LogbergError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"this is cluster {self._cluster_id}, broker {claim.broker_id} belongs to "
                f"{claim.cluster_id[:100]}: point it at its own controllers, or start it with an "
                "empty folder",
            )

    def _check_speaks_for(self, caller: Caller, broker_id: int) -> None:
        """Raises LogbergError CLUSTER_AUTHORIZATION_FAILED."""
        if caller.principal == broker_principal(broker_id):
            return
        if self._require_authentication or not caller.principal.startswith("User:"):
            raise LogbergError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{caller.principal} can't speak for broker {broker_id}: use the certificate that "
                f"was made for it (broker://<cluster id>/{broker_id}), or a token whose principal "
                f"is {broker_principal(broker_id)}",
            )


def broker_principal(broker_id: int) -> str:
    """Return the principal of a broker's own credentials."""
    return f"Broker:{broker_id}"


def acted_as(caller: Caller, broker_id: int) -> str:
    """Return the broker that the caller acted as; empty if the credentials are the broker's own."""
    own = broker_principal(broker_id)
    return "" if caller.principal == own else own


def check_process(image: MetadataImage, claim: BrokerClaim) -> None:
    """Check that the claim is the registered process's. Raises LogbergError STALE_BROKER_EPOCH."""
    broker = registered(image, claim.broker_id, claim.broker_epoch)
    if claim.incarnation_id is not None:
        check_incarnation(broker, claim.incarnation_id)


def check_incarnation(broker: BrokerRegistration, incarnation_id: bytes) -> None:
    """Check that a process is the registered one. Raises LogbergError STALE_BROKER_EPOCH."""
    if broker.incarnation_id != incarnation_id:
        raise LogbergError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"epoch {broker.broker_epoch} of broker {broker.broker_id} belongs to another "
            "process; stop this one",
        )


def is_process(image: MetadataImage, claim: BrokerClaim) -> bool:
    """Return whether the claim is the registered process's."""
    try:
        check_process(image, claim)
    except LogbergError:
        return False
    return True
