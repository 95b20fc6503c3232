"""For which users a broker may ask (KIP-590).

The header `x-logberg-on-behalf-of` is only a claim. The controller believes it if two things hold:
the caller was authenticated as a broker, and the controllers' settings name the user for that
broker. A user's own bearer token needs no grant: the agent passes it on, and the controller checks
it.

Where authentication is off, Kafka's listener lets any caller be a broker. Its claim goes into the
log beside `none`, the way in which the caller was authenticated.
"""

from collections.abc import Mapping

from controller.leader.identity import broker_principal
from metadata.errors import ErrorCode, LogbergError
from runtime.http.requests import ANONYMOUS, Caller

EVERY_USER = "User:*"
ON_BEHALF_OF = "x-logberg-on-behalf-of"


def on_behalf_of(caller: Caller, claimed: str, delegations: Mapping[int, frozenset[str]]) -> str:
    """Return the user that the log names beside the caller; empty if it asks for itself.

    Raises LogbergError CLUSTER_AUTHORIZATION_FAILED for a claim that no setting grants.
    """
    if not claimed:
        return ""
    if claimed == caller.principal == ANONYMOUS.principal:
        # An agent of release 0.1 sends this for callers that were not authenticated.
        return ""
    if caller.acted_as:
        # Authentication is off. The log shows that nothing was proved.
        return claimed
    granted: frozenset[str] = frozenset()
    for broker_id, users in delegations.items():
        if caller.principal == broker_principal(broker_id):
            granted = users
    if claimed in granted or (EVERY_USER in granted and claimed.startswith("User:")):
        return claimed
    raise LogbergError(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"{caller.principal} may not ask on behalf of {claimed[:100]!r}: no [[delegations]] in the "
        "controllers' settings grants it; show the user's own token, or add the grant",
    )
