"""Coordination on ZooKeeper, over kazoo without its recipes (KIP-30, ADR 0057).

`paths` says which nodes there are; `one_session` and `connection` make a kazoo client into a
session that asyncio can ask; `queues` are groups, elections and locks; `keys` and `commits` are the
storage; `node_cache`, `views` and `watches` report changes. `backend` puts them together.
"""

from coordination.backend import Backend, BackendSettings
from coordination.errors import ConfigError


def make_backend(settings: BackendSettings) -> Backend:
    """Make the backend of `zookeeper://host:port,…/path`. Raises ConfigError."""
    try:
        from coordination.backends.zookeeper.backend import ZooKeeperBackend  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"install logberg[zookeeper] for it: {error}") from error
    return ZooKeeperBackend(settings)
