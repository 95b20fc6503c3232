"""Compares a log with signed heads that somebody kept elsewhere, and names what differs first.

Rule: a head counts if a majority of the given keys signed it, whoever kept it. With the hashes of
the batches that a place keeps beside the heads, the first other batch is named exactly. They count
only as far as a kept head is their root. With heads alone, it lies between two of them.

Kept heads may be of two histories, if keys were stolen. One log has at most one of two heads that
contradict each other. Then the answer says that a majority signed both, and where the log differs
from the other one.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from ledger.batch import HASH_BYTES, Batch
from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import EMPTY_ROOT, leaf_hash
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import NoteKey, SignedNote

_MOST_REFUSED: Final = 20


class KeptHeadFiles(NamedTuple):
    """What was kept of a log: signed heads as they were kept, and hashes of its batches."""

    notes: dict[str, bytes]
    """By the name of the file."""
    hashes: bytes = b""
    """Of all batches from the first on, 32 bytes each; empty: none were kept."""


class KeptHeadsAnswer(NamedTuple):
    """How a log compares with what was kept of it."""

    heads: int
    """So many kept heads count."""
    held: int
    """So many of them are of this log."""
    newest_held: int
    """The batches under the newest of these; 0: there is none."""
    batches: int
    """So many the log has."""
    first_wrong_batch: int | None
    """The number of the first batch that is another one; None: not known, or there is none."""
    first_wrong_offset: int | None
    """Its offset; if the log ends before, the log's end."""
    wrong_between: tuple[int, int] | None
    """With heads alone: the first other batch lies in [from, to)."""
    signed_twice: int | None
    """The size of a kept head that is not of this log, although a kept head of as many batches, or
    more, is: a majority signed two histories. None: they did not."""
    refused: dict[str, str]
    """Kept heads that don't count, and why."""

    @property
    def ok(self) -> bool:
        """Every kept head is one of this log, and there is at least one."""
        return bool(self.heads) and self.held == self.heads

    @property
    def problem(self) -> str:
        """What is wrong, in a sentence; empty: nothing is."""
        if not self.heads:
            return "no kept head counts: none is signed by a majority of the keys"
        if self.ok:
            return ""
        said = "the log is not the one whose heads were kept"
        if self.signed_twice is not None:
            said = (
                f"a majority of the keys signed two histories: the log has a kept head of "
                f"{self.newest_held} batches, and not the one of {self.signed_twice}. Keys were "
                "stolen, or the cluster lost its end and was recovered. Compared with that other "
                "head"
            )
        if self.first_wrong_batch is not None:
            return (
                f"{said}: batch {self.first_wrong_batch}, at offset {self.first_wrong_offset}, is "
                "the first that differs"
            )
        assert self.wrong_between is not None
        low, high = self.wrong_between
        return f"{said}: the first batch that differs is one of {low} to {high - 1}"


def compare_with_heads(
    batches: Iterable[Batch], cluster_id: str, kept: KeptHeadFiles, keys: Collection[bytes]
) -> KeptHeadsAnswer:
    """Read a whole log once, and compare it. `keys`: public keys. Raises what `batches` raises.

    The log must begin with its first batch.
    """
    heads, refused = _believed(kept, cluster_id, keys)
    sizes = {head.size for head in heads}
    roots: dict[int, bytes] = {0: Frontier().root()}
    frontier = Frontier()
    first, offset, end = None, None, 0
    hashes = _proved(kept.hashes, heads)
    for number, batch in enumerate(batches):
        end = batch.header.end_offset
        known = hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES]
        if first is None and known and known != batch.hash:
            first, offset = number, batch.header.base_offset
        frontier = frontier.append(leaf_hash(batch.hash))
        if frontier.size in sizes:
            roots[frontier.size] = frontier.root()
    held = [head for head in heads if roots.get(head.size) == head.root]
    others = [head for head in heads if roots.get(head.size) != head.root]
    if first is None and len(hashes) // HASH_BYTES > frontier.size:
        first, offset = frontier.size, end
    newest = max((head.size for head in held), default=0)
    between, twice = None, None
    if others:
        high = others[0].size
        between = (max((head.size for head in held if head.size < high), default=0), high)
        twice = high if high <= newest else None
    return KeptHeadsAnswer(
        len(heads), len(held), newest, frontier.size, first, offset, between, twice, refused
    )


def _believed(
    kept: KeptHeadFiles, cluster_id: str, keys: Collection[bytes]
) -> tuple[list[TreeHead], dict[str, str]]:
    heads: dict[TreeHead, None] = {}
    refused: dict[str, str] = {}
    first = origin_of(cluster_id)
    for name, data in sorted(kept.notes.items()):
        why = ""
        try:
            note = SignedNote.parse(data)
            origin = TreeHead.parse(note.text).origin
            known = [NoteKey(origin, key) for key in keys]
            head = believed_head(note, origin, known)
        except LedgerError as error:
            why = str(error)
        else:
            if origin != first and not origin.startswith(f"{first}/"):
                why = f"it is of {origin}"
            elif not head.size and head.root != EMPTY_ROOT:
                why = "no log of 0 batches has its root"
            else:
                heads[head] = None
        if why and len(refused) < _MOST_REFUSED:
            refused[name] = why
    return sorted(heads, key=lambda head: head.size), refused


def _proved(hashes: bytes, heads: Sequence[TreeHead]) -> bytes:
    """Return the hashes up to the largest head whose root they have."""
    roots = {(head.size, head.root) for head in heads}
    sizes = {head.size for head in heads}
    proved = 0
    frontier = Frontier()
    for at in range(0, len(hashes) - HASH_BYTES + 1, HASH_BYTES):
        frontier = frontier.append(leaf_hash(hashes[at : at + HASH_BYTES]))
        if frontier.size in sizes and (frontier.size, frontier.root()) in roots:
            proved = frontier.size
    return hashes[: proved * HASH_BYTES]
