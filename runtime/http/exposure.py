"""Which addresses a listener may use, and which Host and Origin headers it accepts.

Rule: a listener that other machines can reach needs TLS, unless the operator allows it explicitly.
A listener on loopback refuses a browser's request that uses another host name (DNS rebinding) or
comes from a page of another site, because it would act with the rights of the browser's user.
"""

import ipaddress
from collections.abc import Collection
from functools import lru_cache
from typing import Final

_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not listened on


class InsecureListenerError(ValueError):
    """A listener beyond this machine without TLS; the message says what to do."""


def is_every_address(host: str) -> bool:
    """Tell whether a host stands for all addresses of this machine, so that nobody can dial it."""
    return host in _EVERY_ADDRESS


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tell whether a host names this machine only.

    Names other than `localhost` don't count, because they may resolve to another address later.
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_listener(host: str, *, tls: bool, insecure_network: bool) -> None:
    """Refuse to listen beyond this machine without TLS. Raises InsecureListenerError."""
    if tls or insecure_network or is_loopback(host):
        return
    raise InsecureListenerError(
        f"will not listen on {host or 'every address'} without TLS: anybody who can reach it could "
        "read and change the cluster's metadata. Configure [tls] cert, key and ca, or listen on "
        "127.0.0.1, or pass --insecure-network if the network is trusted"
    )


def host_of(authority: str) -> str:
    """Return the host in `host[:port]`, in lower case, without brackets and the last dot."""
    host = authority.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0].rstrip(".") if ":" in host else host.rstrip(".")


def is_foreign_host(authority: str, allowed: Collection[str]) -> bool:
    """Tell whether a Host header names neither this machine nor an allowed name."""
    host = host_of(authority)
    return not is_loopback(host) and host not in allowed


def is_foreign_origin(origin: str, authority: str) -> bool:
    """Tell whether an Origin header names another site than the Host header does."""
    return origin.lower().partition("://")[2] != authority.strip().lower()
