"""Scheme, host and port of a URL, and whether a leader's URL may be followed.

Rule: a client follows an answer to another server only if the scheme stays the same. So no answer
can lead a client from https to http, where a server can't prove its identity.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where a server is."""

    scheme: str
    host: str
    port: int


def origin_of(url: str) -> Origin | None:
    """Return the origin of `url`; None unless it is `http[s]://host[:port]` and nothing more."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        return None
    if scheme not in _PORTS or not host or not url.isprintable() or " " in url:
        return None
    if "@" in parts.netloc or parts.path not in ("", "/") or parts.query or parts.fragment:
        return None
    return Origin(scheme, host, port if port is not None else _PORTS[scheme])


def may_follow(asked: str, named: str) -> bool:
    """Tell whether a client of the URL `asked` may follow an answer to the URL `named`."""
    to, came_from = origin_of(named), origin_of(asked)
    return to is not None and came_from is not None and to.scheme == came_from.scheme
