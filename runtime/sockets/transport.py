"""Cuts the reference of asyncio's socket transport to itself when its connection ends.

Rule: a connection calls `socket_transport` when it is made and `cut` when it is lost. Otherwise
only the collector could free the transport, and the collector never frees an object that it was
told to leave alone (`runtime.loop.collection`). Both attributes are internal to asyncio. If a
Python version or a loop has none, nothing is done.
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
