"""Reads the file of the cluster key (ADR 0031, 0038).

Rule: the file is for one user of the system only; one that others may open is refused.
"""

from pathlib import Path
from typing import Final

from metadata.messages import SubjectKeysReply
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import opened_tree
from metadata.sealing import KEY_BYTES, ClusterKey
from metadata.subject_keys import SubjectKeysError
from runtime.disk.interface import Disk
from runtime.disk.secret_file import read_secret

_KEYS: Final = "keys"
"""The folder of a controller in which its tree of subjects' keys lies (ADR 0093)."""


def read_cluster_key(path: Path | str) -> ClusterKey:
    """Return the key of a controller, or of a broker that opens secrets. Raises SecretFileError."""
    return ClusterKey(read_secret(Path(path), KEY_BYTES))


def with_fetched_keys(key: ClusterKey, reply: SubjectKeysReply) -> ClusterKey:
    """Return a key that also opens what a controller opens now.

    Raises SealingError, SubjectKeysError.
    """
    opening = key.copy()
    opening.subjects.keys = opened_tree(key, reply.keys_id, reply.sealed)
    return opening


def with_subject_keys(key: ClusterKey, disk: Disk) -> ClusterKey:
    """Return a key that also opens what the tree of keys in a controller's folder opens.

    A tree that the key can't open, or of which there are several, is left out.
    """
    trees = []
    for name in disk.list(_KEYS):
        try:
            trees.append(opened_tree(key, name, disk.read(f"{_KEYS}/{name}")))
        except (SealingError, SubjectKeysError):
            continue
    opening = key.copy()
    opening.subjects.keys = trees[0] if len(trees) == 1 else None
    return opening
