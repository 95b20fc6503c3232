"""Batch proofs: `GET /v1/proofs/<offset>`, a proof that a batch is in the log.

Rule: a batch proof is a file that a person keeps. It holds all that a checker needs but the keys.
Its fields never change their meaning; a batch proof of another form has another `format`.
"""

from typing import Final

from metadata.messages.message import Count, ReplyMessage

BATCH_PROOF_FORMAT: Final = 1
HEAD_KEYS_HEADER: Final = "logberg-head-keys"
"""Of the answer with a signed head: the keys of its signers, for whoever sees the cluster first."""


class BatchProofReply(ReplyMessage, frozen=True):
    """A batch, and the proof that it is in the log under a signed head."""

    format: Count
    """1."""
    cluster_id: str
    offset: Count
    """The offset that was asked for; the batch holds it."""
    leaf_index: Count
    """The number of the batch in the log, from 0: its leaf in the tree."""
    batch: bytes
    """The whole batch as it lies on disk (section 3 of the formats)."""
    inclusion: tuple[bytes, ...]
    """Hashes from the leaf to the root, the lowest first (RFC 6962)."""
    head: str
    """The signed head: a note of C2SP."""
    older_size: Count = 0
    """The size of an older head, if one was asked about."""
    consistency: tuple[bytes, ...] = ()
    """Shows that the older tree is the beginning of this one (RFC 6962)."""
    older_head: str = ""
    """That older head, if whoever asked added it."""
