"""Who caused a change, in one line of words: the same wherever people read it.

Rule: everything that the log knows of the caller is shown. An auditor who sees only a name can't
tell a stolen token from its owner.
"""

_INTERNAL = "internal"
"""The method of a controller's own decisions: nobody called."""


def caller(
    principal: str,
    on_behalf_of: str = "",
    auth_method: str = "",
    client_address: str = "",
    acted_as: str = "",
) -> str:
    """Return `User:ana for User:kim (token from 10.0.0.7)`; what is empty is left out.

    Who acted as a broker without being it: `User:ANONYMOUS as Broker:7 (none from 127.0.0.1)`.
    """
    words = principal or "-"
    if acted_as:
        words += f" as {acted_as}"
    if on_behalf_of:
        words += f" for {on_behalf_of}"
    method = "" if auth_method == _INTERNAL else auth_method
    carried = " ".join(filter(None, (method, client_address and f"from {client_address}")))
    return f"{words} ({carried})" if carried else words
