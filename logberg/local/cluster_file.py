"""cluster.json: what runs in the folder of a local cluster.

Rule: the file is in the folder only while the cluster is ready, so scripts can wait for it.
"""

from pathlib import Path

import msgspec

from logberg.client.access import Access, read_token

CLUSTER_FILE = "cluster.json"
CLUSTER_KEY_FILE = "config/cluster.key"
IDENTITY_FILE = Path("config", "identity.json")
"""Marks a folder as this cluster's. It is written before any process starts."""
TOKEN_FILE = "admin.token"  # noqa: S105 - a file's name


class LocalClusterError(Exception):
    """The cluster can't be started; the message says why and what to do."""


class LocalProcess(msgspec.Struct, frozen=True):
    """One process, as cluster.json shows it."""

    role: str
    id: int
    pid: int | None
    """None: it does not run."""
    url: str
    quorum: str | None
    folder: str


class ClusterFile(msgspec.Struct, frozen=True, rename="camel"):
    """cluster.json."""

    cluster_id: str
    controllers: int
    brokers: int
    port_base: int
    ca: str
    token_file: str
    nodes: tuple[LocalProcess, ...] = ()

    def access(self) -> Access:
        """Return the administrator's credentials. Raises AccessError."""
        return Access(read_token(Path(self.token_file)), self.ca, cluster_id=self.cluster_id)
