"""Coordination on Cassandra, by lightweight transactions (KIP-30, ADR 0057).

`schema` says which tables there are; `link` lets asyncio ask the driver. `spaces` makes a partition
into a state that changes by one number at a time; `sessions` end for good; `queues` are groups,
elections and locks; `commits` and `keys` are the storage; `polling` and `watches` find changes.
`backend` puts them together.
"""

from coordination.backend import Backend, BackendSettings
from coordination.errors import ConfigError


def make_backend(settings: BackendSettings) -> Backend:
    """Make the backend of `cassandra://host:port,…/keyspace`. Raises ConfigError."""
    try:
        from coordination.backends.cassandra.backend import CassandraBackend  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"install logberg[cassandra] for it: {error}") from error
    return CassandraBackend(settings)
