"""From which address a request counts that a broker forwards.

The header `x-logberg-client-address` names the client's address. It is the broker's word, as the
user is for whom it asks (`controller.leader.delegation`). The controller believes it if two things
hold: the connection proves a broker, and the broker asks for somebody else. That is the user of
`x-logberg-on-behalf-of`, or the owner of the token that the broker forwards. Otherwise a broker
could hide its own address from an entry about it.
"""

from ipaddress import ip_address
from typing import Final

import msgspec

from controller.leader.delegation import ON_BEHALF_OF
from metadata.errors import ErrorCode, LogbergError
from metadata.plain_text import check_plain
from runtime.http.requests import Caller, Request

CLIENT_ADDRESS: Final = "x-logberg-client-address"
_BROKER: Final = "Broker:"


def at_client_address(request: Request) -> Request:
    """Return a request whose caller has the address that a broker names in it, if it names one.

    Raises LogbergError: CLUSTER_AUTHORIZATION_FAILED for a caller that may name none, and
    INVALID_REQUEST for a text that is no address.
    """
    named = request.headers.get(CLIENT_ADDRESS, "")
    if not named:
        return request
    caller = request.caller
    if not _forwards(caller, request.headers.get(ON_BEHALF_OF, "")):
        lacks = "a broker's certificate or token, and a user for whom it asks"
        raise LogbergError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{caller.principal} may not name a client's address ({CLIENT_ADDRESS}): only a broker "
            "that forwards somebody's request may; leave the header out",
            {"principal": caller.principal, "lacks": lacks},
        )
    caller = msgspec.structs.replace(caller, address=_address(named))
    return msgspec.structs.replace(request, caller=caller)


def _forwards(caller: Caller, claimed: str) -> bool:
    """Return whether a broker asks, and for somebody else. `claimed`: for whom it says to ask."""
    if caller.principal.startswith(_BROKER) and claimed:
        return True
    return caller.carried_by.startswith(_BROKER) and caller.carried_by != caller.principal


def _address(text: str) -> str:
    """Return an IP address as the log writes it. Raises LogbergError INVALID_REQUEST."""
    check_plain(f"header {CLIENT_ADDRESS}", text)
    try:
        return str(ip_address(text))
    except ValueError:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"header {CLIENT_ADDRESS}: {text[:100]!r} is no IP address",
        ) from None
