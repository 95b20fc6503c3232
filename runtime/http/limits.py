"""The limits on the resources of an HTTP listener, for all clients and for each.

Rule: every limit has a default that is enough for 1,000 brokers and their users, and keeps a flood
of strangers within 64 MiB. `docs/reference.md` lists them for users.
"""

from typing import NamedTuple

from runtime.sockets.byte_budget import BODIES_AND_HANDSHAKES_MAX

NEWCOMER_BYTES = 128 * 1024
"""The memory of a TLS session (55 to 85 KB, measured) and a part of a head."""


class HttpLimits(NamedTuple):
    """Sizes in bytes, times in seconds, numbers of connections."""

    body_bytes: int = 4 * 1024 * 1024
    body_s: float = 10.0
    head_s: float = 5.0
    """Within this time a connection must send its first bytes (with TLS, a whole ClientHello), and
    each request its head, counted from the end of the request before. So an idle connection ends
    after this time."""
    reply_s: float = 120.0
    """If the handler has not replied by then, the server replies with an error."""
    connections: int = 20_000
    """Fewer if the process has few file descriptors (`runtime.sockets.descriptors`)."""
    connections_per_address: int = 4_000
    newcomers: int = 64
    """Connections that have sent bytes and whose caller is not known yet."""
    newcomer_grace_s: float = 1.0
    """While others wait, a newcomer whose caller is not known after this time is closed."""
    budget_bytes: int = BODIES_AND_HANDSHAKES_MAX
    """For the bodies that are being read and for the newcomers, together."""
