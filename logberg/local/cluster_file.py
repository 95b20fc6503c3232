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
    kafka: str | None = None
    """host:port at which Kafka's clients reach a broker; None: it has no such listener."""


class KafkaNode(msgspec.Struct, frozen=True):
    """One of Kafka's brokers, as cluster.json shows it."""

    id: int
    pid: int | None
    """None: it does not run."""
    address: str
    """host:port for clients that don't log in."""
    scram: str
    """host:port for clients that log in with a user's password (SCRAM-SHA-256)."""
    folder: str


class KafkaPart(msgspec.Struct, frozen=True, rename="camel"):
    """Kafka's brokers in a local cluster, as cluster.json shows them."""

    version: str
    """Kafka's, such as 4.3.1."""
    brokers: int
    bootstrap: str = ""
    """bootstrap.servers of clients."""
    scram_bootstrap: str = ""
    """The same for clients that log in."""
    controllers: str = ""
    """The controllers' Kafka listeners: controller.quorum.bootstrap.servers of a broker."""
    admin_properties: str = ""
    """The file with which Kafka's tools log in at these listeners as the administrator."""
    certificates: bool = False
    """Clients of `bootstrap` show certificates, because rights are enforced. The administrator's is
    in `admin_properties`."""
    nodes: tuple[KafkaNode, ...] = ()


class ClusterFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """cluster.json."""

    cluster_id: str
    controllers: int
    brokers: int
    port_base: int
    ca: str
    token_file: str
    nodes: tuple[LocalProcess, ...] = ()
    kafka_clients: bool = False
    """Our own agents listen for Kafka's clients."""
    kafka: KafkaPart | None = None
    """None: the brokers are our own agents."""
    authorization: str = "off"
    """The controllers' setting. New clusters are on; files of clusters from before don't say it."""

    def access(self) -> Access:
        """Return the administrator's credentials. Raises AccessError."""
        return Access(read_token(Path(self.token_file)), self.ca, cluster_id=self.cluster_id)
