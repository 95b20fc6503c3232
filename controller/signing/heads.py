"""A head that a majority of the controllers signed."""

from typing import NamedTuple

from ledger.merkle.heads import TreeHead


class SignedHead(NamedTuple):
    """A head that a majority signed."""

    head: TreeHead
    note: str
    """With the cosignatures that witnesses gave so far."""
    signed_ms: int
    """When this node had the majority; wall clock."""
