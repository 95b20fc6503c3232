"""A service starts without what libraries import for uses that it doesn't have.

Rule: only while its modules are imported, and only what is known to be optional: structlog takes
rich and pygments for coloured tracebacks, PySyncObj takes cryptography for a wire that we don't
use, aiohttp's client reads the system's authorities when it is imported. Together they are a sixth
of a controller's imports, and a controller that restarts is waited for.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_OPTIONAL = ("rich", "cryptography")
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def light_start(*, needs_authorities: bool) -> Iterator[None]:
    """Import inside this. `needs_authorities`: the process is a client by the system's CAs."""
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    before = {name: os.environ.get(name) for name in _AUTHORITIES}
    # An import of a module that stands as None raises ImportError.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    if not needs_authorities:
        os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if was_collecting:
            gc.enable()
