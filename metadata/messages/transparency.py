"""Batch proofs, and the keys that sign heads: `GET /v1/proofs/<offset>`, `/v1/quorum/head-keys`.

Rule: a batch proof is a file that a person keeps. It holds all that a checker needs but the keys.
Its fields never change their meaning; a batch proof of another form has another `format`.
"""

from typing import Annotated, Any, Final

from msgspec import Meta

from metadata.messages.message import Count, ReplyMessage, RequestMessage

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


class HeadKeyDescription(ReplyMessage, frozen=True):
    """The key with which a voter signs heads, as the log names it."""

    node_id: int
    directory_id: str
    public_key: str
    """The key as a line, as in the controller's head.pub."""
    state: str
    """registered, rotating, rotated or replaced."""


class ListHeadKeysReply(ReplyMessage, frozen=True):
    """The keys that count, and the newest head in the log."""

    offset: int
    keys: tuple[HeadKeyDescription, ...]
    head_size: Count = 0
    """Batches under the newest signed head in the log; 0: there is none."""
    head_root: bytes = b""
    signed_by: tuple[int, ...] = ()
    """The controllers that signed it."""


class ChangeHeadKeyRequest(RequestMessage, frozen=True):
    """Ask a controller to draw another key; or name its key, because the one before is lost."""

    node_id: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    public_key: Annotated[str, Meta(max_length=1000)] = ""
    """The line of its head.pub: this key counts from now on, and the one before no more. It needs a
    reason. Empty: the controller draws a key, and the key before and the new one sign that."""
    dry_run: bool = False


class ChangeHeadKeyReply(ReplyMessage, frozen=True):
    """The key that counts now, and whether the controller is about to replace it."""

    node_id: int
    public_key: str
    rotates: bool
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
