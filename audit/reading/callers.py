"""Who caused a change, as one line of text. It is the same wherever people read it.

Rule: the line shows everything that the log knows about the caller. From a name alone an auditor
can't tell a stolen token from its owner.
"""

from metadata.sealed_addresses import shown_address

_INTERNAL = "internal"
"""The auth method of a controller's own decisions, which nobody requested."""


def caller(
    principal: str,
    on_behalf_of: str = "",
    auth_method: str = "",
    client_address: str = "",
    acted_as: str = "",
) -> str:
    """Return such as `User:ana for User:kim (token from 10.0.0.7)`; empty parts are left out.

    A sealed address is told by the number of its subject.

    A caller that acted as a broker of another name: `User:ANONYMOUS as Broker:7 (none from
    127.0.0.1)`.
    """
    words = principal or "-"
    if acted_as:
        words += f" as {acted_as}"
    if on_behalf_of:
        words += f" for {on_behalf_of}"
    method = "" if auth_method == _INTERNAL else auth_method
    carried = " ".join(
        filter(None, (method, client_address and f"from {shown_address(client_address)}"))
    )
    return f"{words} ({carried})" if carried else words
