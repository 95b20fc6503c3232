"""etcd as a store for coordination, by its JSON gateway; it needs no package beside Logberg's own.

`backend` puts the parts together. `gateway` asks the servers and fails over. `layout` says where
everything stands, `messages` how it travels. `sessions`, `resources`, `storage` (with `proofs`) and
`watch` (with `subscriptions`) are the four things that the seam asks for.
"""

from coordination.backend import Backend, BackendSettings
from coordination.backends.etcd.backend import EtcdBackend


def make_backend(settings: BackendSettings) -> Backend:
    """Return a connection to etcd, not yet opened. Raises ConfigError."""
    return EtcdBackend(settings)
