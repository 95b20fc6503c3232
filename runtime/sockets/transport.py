"""Removes the references of asyncio's socket transport to itself when its connection ends.

Rule: a connection calls `socket_transport` when it is made and `cut` when it is lost. Otherwise
only the collector could free the transport, and the collector never frees an object that it was
told to leave alone (`runtime.loop.collection`).

asyncio removes these references in `close()` only, not when the connection is aborted or reset. TLS
aborts the transport below it. The attributes are internal to asyncio: `_write_ready` refers to the
transport since Python 3.12, `_read_ready_cb` on every version. `cut` ignores an attribute that a
Python version or another loop doesn't have.
"""

import asyncio
from typing import Final

_REFERENCES: Final = ("_read_ready_cb", "_write_ready")
"""Attributes that hold a bound method of the transport itself."""


def socket_transport(transport: asyncio.BaseTransport) -> object:
    """Return the transport that reads the socket: this one, or the one below its TLS."""
    tls = getattr(transport, "_ssl_protocol", None)
    return transport if tls is None else getattr(tls, "_transport", None)


def cut(transport: object) -> None:
    """Free the transport as soon as nobody refers to it. It must not read or write any more."""
    attributes = getattr(transport, "__dict__", {})
    for name in _REFERENCES:
        # Before Python 3.12 `_write_ready` is a method of the class: there is nothing to remove.
        if attributes.get(name) is not None:
            attributes[name] = None
