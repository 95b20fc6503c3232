"""Reads the file of the cluster key (ADR 0031, 0038).

Rule: the file is for one user of the system only; one that others may open is refused.
"""

from pathlib import Path

from metadata.sealing import KEY_BYTES, ClusterKey
from runtime.disk.secret_file import read_secret


def read_cluster_key(path: Path | str) -> ClusterKey:
    """Return the key of a controller, or of a broker that opens secrets. Raises SecretFileError."""
    return ClusterKey(read_secret(Path(path), KEY_BYTES))
