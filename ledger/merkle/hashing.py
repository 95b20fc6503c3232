"""The hashes of RFC 6962: a leaf has the prefix 0, a node the prefix 1.

Invariant: so no leaf has the hash of a node, and no proof can pass one off as the other.
"""

from hashlib import sha256
from typing import Final

from ledger.batch import HASH_BYTES

EMPTY_ROOT: Final = sha256().digest()
"""The root of the tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node over two subtrees."""
    return sha256(b"\x01" + left + right).digest()


assert len(EMPTY_ROOT) == HASH_BYTES
