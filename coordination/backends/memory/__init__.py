"""A store inside this process, for tests and as the model of what a backend promises.

`memory://name`: all clients of the process that give the same name share a store. It is gone with
its last client. `store` is the state, `connection` a client's view of it.
"""

from coordination.backend import Backend, BackendSettings
from coordination.backends.memory.connection import MemoryBackend
from coordination.backends.memory.store import find_store
from coordination.errors import ConfigError


def make_backend(settings: BackendSettings) -> Backend:
    """Return a connection to the store of the URL's host. Raises ConfigError."""
    settings.refuse_unknown_options()
    if len(settings.endpoints) > 1 or settings.path:
        raise ConfigError("memory:// takes one name and no path, such as memory://tests")
    return MemoryBackend(find_store("".join(settings.endpoints)), settings.clock)
