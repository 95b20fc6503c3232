"""asyncio's transport of a socket refers to itself: the reference is cut when its connection ends.

Rule: a connection takes `socket_transport` when it is made and calls `cut` when it is lost. Else
only the collector frees the transport, and never one that was alive when the collector was told to
leave alone what is in memory (`runtime.collection`). Both attributes are asyncio's own; where a
Python or a loop has none, nothing is done.
"""

import asyncio
from typing import Final

_REFERENCE: Final = "_read_ready_cb"
"""A bound method of the transport itself."""


def socket_transport(transport: asyncio.BaseTransport) -> object:
    """Return the transport that reads the socket: this one, or the one below its TLS."""
    tls = getattr(transport, "_ssl_protocol", None)
    return transport if tls is None else getattr(tls, "_transport", None)


def cut(transport: object) -> None:
    """Let it go with its last reference; nothing is read from it any more."""
    if getattr(transport, _REFERENCE, None) is not None:
        setattr(transport, _REFERENCE, None)
