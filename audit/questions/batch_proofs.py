"""Checks a batch proof offline: that a change is in the log under a signed head.

Rule: nothing is believed but the keys that the caller wrote down. The step that fails is named: the
file, the batch, a head's signatures, the inclusion, or the consistency with an older head.
"""

from collections.abc import Sequence

import msgspec

from ledger.batch import Batch, parse
from ledger.errors import LedgerError
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.heads import HeadError, TreeHead, believed_head, origin_of
from ledger.merkle.notes import NoteKey, SignedNote
from ledger.merkle.proofs import verify_consistency, verify_inclusion
from metadata.messages import BATCH_PROOF_FORMAT, BatchProofReply

PROOF_BYTES_MAX = 4 * 1024 * 1024
_decode = msgspec.json.Decoder(BatchProofReply).decode


class ProofRefusedError(Exception):
    """The proof doesn't show what it should; the message begins with the step that failed."""


class CheckedProof(msgspec.Struct, frozen=True):
    """What a proof shows."""

    cluster_id: str
    offset: int
    leaf: int
    """The number of the batch in the log."""
    batch: Batch
    head: TreeHead
    signers: tuple[NoteKey, ...]
    older: TreeHead | None


def read_proof(data: bytes) -> BatchProofReply:
    """Read the file of a proof. Raises ProofRefusedError."""
    if len(data) > PROOF_BYTES_MAX:
        raise ProofRefusedError(f"file: a proof has at most {PROOF_BYTES_MAX} bytes")
    try:
        # As text: the decoder passes over names that it does not know, whatever bytes they are.
        proof = _decode(data.decode())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProofRefusedError(f"file: it is no batch proof: {error}") from None
    if proof.format != BATCH_PROOF_FORMAT:
        raise ProofRefusedError(f"file: its format is {proof.format}; a newer release wrote it")
    return proof


def check_proof(proof: BatchProofReply, keys: Sequence[NoteKey]) -> CheckedProof:
    """Check a proof with the controllers' public keys. Raises ProofRefusedError."""
    try:
        batch = parse(proof.batch)
    except LedgerError as error:
        raise ProofRefusedError(f"batch: {error}") from None
    if len(batch.encoded) != len(proof.batch):
        raise ProofRefusedError("batch: bytes follow it")
    header = batch.header
    if not header.base_offset <= proof.offset < header.end_offset:
        raise ProofRefusedError(
            f"batch: it holds offsets {header.base_offset} to {header.end_offset - 1}, and the "
            f"proof is about {proof.offset}"
        )
    head, signers = _believed(proof, proof.head, keys, "head")
    try:
        verify_inclusion(
            leaf_hash(batch.hash), proof.leaf_index, head.size, head.root, proof.inclusion
        )
    except LedgerError as error:
        raise ProofRefusedError(f"inclusion: {error}") from None
    older = None
    if proof.older_head:
        older, _ = _believed(proof, proof.older_head, keys, "older head")
        if older.size != proof.older_size:
            raise ProofRefusedError(
                f"consistency: it begins at {proof.older_size} batches, and the older head has "
                f"{older.size}"
            )
        try:
            verify_consistency(older.size, older.root, head.size, head.root, proof.consistency)
        except LedgerError as error:
            raise ProofRefusedError(f"consistency: {error}") from None
    return CheckedProof(
        proof.cluster_id, proof.offset, proof.leaf_index, batch, head, signers, older
    )


def _believed(
    proof: BatchProofReply, text: str, keys: Sequence[NoteKey], what: str
) -> tuple[TreeHead, tuple[NoteKey, ...]]:
    """Return a head that a majority of the keys signed, and who did."""
    try:
        note = SignedNote.parse(text.encode())
        origin = TreeHead.parse(note.text).origin
        first = origin_of(proof.cluster_id)
        if origin != first and not origin.startswith(f"{first}/"):
            raise HeadError(f"it is of {origin!r}, and the proof is about {proof.cluster_id!r}")
        # A restored cluster has another origin, and its controllers the same keys.
        named = [NoteKey(origin, key.public) for key in keys if key.name == first]
        if not named:
            raise HeadError(f"none of the keys is of {first!r}")
        return believed_head(note, origin, named), note.signers(named)
    except LedgerError as error:
        raise ProofRefusedError(f"{what}: {error}") from None
