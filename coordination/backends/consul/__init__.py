"""Consul as a store for coordination, by its HTTP API; it needs no package beside Logberg's own.

`backend` puts the parts together. `gateway` asks the servers. `layout` says where everything
stands, `messages` how it travels. `sessions`, `resources`, `storage` (with `proofs`) and `watch`
(with `polls`) are the four things that the seam asks for.
"""

from coordination.backend import Backend, BackendSettings
from coordination.backends.consul.backend import ConsulBackend


def make_backend(settings: BackendSettings) -> Backend:
    """Return a connection to Consul, not yet opened. Raises ConfigError."""
    return ConsulBackend(settings)
