"""For whom a broker may ask: what the controllers' settings grant, and nothing else (KIP-590).

Rule: the header `x-logberg-on-behalf-of` is a claim. It is believed only of a caller that was
authenticated as a broker, and only for users that the settings name for that broker. A user's
bearer token needs no grant: the agent passes it on, and the controller judges it itself.
"""

from collections.abc import Mapping

from controller.leader.identity import broker_principal
from metadata.errors import ErrorCode, LogbergError
from runtime.requests import ANONYMOUS, Caller

EVERY_USER = "User:*"
ON_BEHALF_OF = "x-logberg-on-behalf-of"


def on_behalf_of(caller: Caller, claimed: str, delegations: Mapping[int, frozenset[str]]) -> str:
    """Return for whom the log says that the caller asks; empty: for itself.

    Raises LogbergError CLUSTER_AUTHORIZATION_FAILED for a claim that no setting grants.
    """
    if not claimed:
        return ""
    if claimed == caller.principal == ANONYMOUS.principal:
        # Agents of release 0.1 say so of callers whom nobody authenticated.
        return ""
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
