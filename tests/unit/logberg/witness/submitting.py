"""A log that grows, and what it submits to a witness."""

from random import Random

from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import SignedNote, SigningKey
from ledger.merkle.proofs import prove_consistency
from ledger.merkle.submissions import Submission
from tests.oracles.transparency.drawn_trees import DrawnTree

ORIGIN = "logberg/a-log"
KEYS = [SigningKey(ORIGIN, bytes((number,)) * 32) for number in (1, 2, 3)]


class SubmittingLog:
    """A tree of some leaves; `seed` chooses the history."""

    def __init__(
        self, size: int = 400, seed: int = 1, same: "SubmittingLog | None" = None, until: int = 0
    ) -> None:
        """`same`: another log, whose first `until` batches are this one's, too."""
        dice = Random(seed)
        leaves = [dice.randbytes(32) for _ in range(size)]
        if same is not None:
            leaves[:until] = same.tree.leaves[:until]
        self.tree: DrawnTree = DrawnTree(leaves)

    def head(self, size: int) -> TreeHead:
        return TreeHead(ORIGIN, size, self.tree.roots[size])

    def note(self, size: int, keys: list[SigningKey] = KEYS[:2]) -> bytes:
        head = self.head(size)
        return SignedNote(head.text, tuple(key.sign(head.text) for key in keys)).encode().encode()

    def proof(self, old: int, size: int) -> tuple[bytes, ...]:
        return prove_consistency(old, size, self.tree.subtree) if old else ()

    def submission(self, old: int, size: int, keys: list[SigningKey] = KEYS[:2]) -> bytes:
        return Submission(old, self.proof(old, size), self.note(size, keys)).encode()
