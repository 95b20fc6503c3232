"""The limits on the resources of an HTTP listener, for all clients and for each.

Rule: every limit has a default that is enough for 1,000 brokers and their users, and keeps a flood
of strangers within 64 MiB. `docs/reference.md` lists them for users.
"""

from typing import NamedTuple

from runtime.sockets.byte_budget import BODIES_AND_HANDSHAKES_MAX

NEWCOMER_BYTES = 128 * 1024
"""What a TLS session (55 to 85 KB, measured) and half a head cost before the caller is known."""


class HttpLimits(NamedTuple):
    """What a client may take up."""

    body_bytes: int = 4 * 1024 * 1024
    body_s: float = 10.0
    head_s: float = 5.0
    """For the first bytes of a connection (a whole ClientHello where TLS is on), and then for the
    head of each request, from the end of the one before: idle connections too."""
    reply_s: float = 120.0
    """A handler that has not answered by then is answered for."""
    connections: int = 20_000
    """Of these no more than the process has descriptors for (`descriptors`)."""
    connections_per_address: int = 4_000
    newcomers: int = 64
    """Connections that have sent something and whose caller is not known yet."""
    newcomer_grace_s: float = 1.0
    """While others wait, a caller must be known after so long."""
    budget_bytes: int = BODIES_AND_HANDSHAKES_MAX
    """For bodies that are being read, and newcomers, together."""
