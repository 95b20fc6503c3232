"""Access of a program to the cluster that `logberg up` runs in a folder.

Rule: the program names only the folder; everything else is read from the folder's files.
"""

import datetime as dt
import ssl
from pathlib import Path

import msgspec

from logberg.client.access import Access
from logberg.client.cluster_key_file import read_cluster_key
from logberg.local.cluster_file import (
    CLUSTER_FILE,
    CLUSTER_KEY_FILE,
    ClusterFile,
    KafkaPart,
    LocalClusterError,
)
from logberg.local.local_ca import LocalCertificateAuthority
from metadata.sealing import ClusterKey
from runtime.sockets.tls import TlsFiles, client_context


class ClusterAccess(msgspec.Struct, frozen=True):
    """A local cluster, with the right to administer it."""

    folder: Path
    cluster_id: str
    controllers: tuple[str, ...]
    """Their URLs."""
    access: Access
    """The administrator's."""

    def broker_tls(self, broker_id: int) -> ssl.SSLContext:
        """Return what a broker of this id shows the controllers: a certificate of the cluster's CA.

        The certificate is written to the folder. Raises OSError, TlsFilesError.
        """
        authority = LocalCertificateAuthority(
            self.folder / "certs", self.cluster_id, dt.datetime.now(dt.UTC)
        )
        pair = authority.issue(f"broker-{broker_id}", f"broker://{self.cluster_id}/{broker_id}")
        return client_context(authority.ca_path, TlsFiles(*pair, authority.ca_path))

    def cluster_key(self) -> ClusterKey:
        """Return the key with which a broker opens secrets. Raises SecretFileError."""
        return read_cluster_key(self.folder / CLUSTER_KEY_FILE)


def find_local_cluster(folder: Path | str) -> ClusterAccess:
    """Read the folder of `logberg up`. Raises LocalClusterError, AccessError."""
    known = _read(folder, f"start a cluster there with `logberg up --data {folder}`")
    return ClusterAccess(
        folder=Path(folder),
        cluster_id=known.cluster_id,
        controllers=tuple(node.url for node in known.nodes if node.role == "controller"),
        access=known.access(),
    )


def find_kafka(folder: Path | str) -> KafkaPart:
    """Return where Kafka's brokers are in the folder of `logberg kafka up`.

    Raises LocalClusterError.
    """
    known = _read(
        folder,
        "start a cluster with `logberg kafka up`, name the folder of one with --data "
        "(LOGBERG_DATA), or give the tool its own --bootstrap-server",
    )
    if known.kafka is None:
        raise LocalClusterError(
            f"{folder} holds a cluster without Kafka's brokers; name the folder of "
            "`logberg kafka up` with --data"
        )
    return known.kafka


def _read(folder: Path | str, what_to_do: str) -> ClusterFile:
    """Read cluster.json. Raises LocalClusterError, which says what to do if there is none."""
    path = Path(folder, CLUSTER_FILE)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterFile)
    except FileNotFoundError:
        raise LocalClusterError(f"{path} is missing; {what_to_do}") from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LocalClusterError(f"{path} can't be read: {error}") from None
