"""Makes batch proofs: a batch and its proof under the newest signed head.

Rule: a batch proof is verified before it leaves. So a tree that is damaged on disk gives no wrong
proof: it is made again, and the caller is told to ask later.
"""

from collections.abc import Callable

from controller.signing.heads import SignedHead
from ledger.batch import Batch, parse
from ledger.batch_tree import BatchPlace, BatchTree
from ledger.errors import LedgerError
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.proofs import verify_consistency, verify_inclusion
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import BATCH_PROOF_FORMAT, BatchProofReply


def batch_proof(
    cluster_id: str,
    tree: BatchTree,
    newest: SignedHead,
    offset: int,
    older_size: int,
    read: Callable[[int], bytes],
) -> BatchProofReply:
    """Return the proof of the batch that holds an offset.

    `read` returns the batch at its base offset. `older_size`: also prove that a tree of this size
    is the beginning; 0: don't. Raises LogbergError; LedgerError if the tree is damaged; OSError.
    """
    head = newest.head
    place = tree.find(offset)
    if place is None:
        raise LogbergError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends at offset {tree.end_offset}"
        )
    if place.leaf >= head.size:
        raise LogbergError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"batch {place.leaf} is newer than the newest signed head, of {head.size} batches; "
            "ask again after the next one",
        )
    if older_size > head.size:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"olderSize: the newest signed head has {head.size} batches, less than {older_size}",
        )
    batch = _batch_at(tree, place, read)
    inclusion = tree.inclusion(place.leaf, head.size)
    verify_inclusion(leaf_hash(batch.hash), place.leaf, head.size, head.root, inclusion)
    consistency: tuple[bytes, ...] = ()
    if older_size:
        consistency = tree.consistency(older_size, head.size)
        older_root = tree.root(older_size)
        verify_consistency(older_size, older_root, head.size, head.root, consistency)
    return BatchProofReply(
        BATCH_PROOF_FORMAT,
        cluster_id,
        offset,
        place.leaf,
        batch.encoded,
        inclusion,
        newest.note,
        older_size,
        consistency,
    )


def _batch_at(tree: BatchTree, place: BatchPlace, read: Callable[[int], bytes]) -> Batch:
    base = tree.place(place.leaf - 1).end_offset if place.leaf else 0
    batch = parse(read(base))
    if batch.hash != place.chain_hash:
        raise LedgerError(f"the tree has another hash for the batch at offset {base}")
    return batch
