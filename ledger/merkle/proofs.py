"""Proofs of RFC 6962: that a leaf is in a tree, and that a tree only grew.

Rule: who makes a proof asks for the roots of whole subtrees only, so tiles are enough. Who verifies
one needs the proof and the heads, and nothing else. A proof that doesn't hold raises ProofError,
and the sentence says what doesn't fit.
"""

from collections.abc import Callable, Sequence

from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.hashing import EMPTY_ROOT, node_hash

Subtree = Callable[[int, int], bytes]
"""(level, number) to the root of the whole subtree over the leaves
[number * 2**level, (number + 1) * 2**level). Level 0: the leaf's hash."""


class ProofError(LedgerError):
    """A proof doesn't show what it is said to show."""


def root_of(size: int, subtree: Subtree) -> bytes:
    """Return the root of the tree's first `size` leaves."""
    return _range_root(0, size, subtree) if size else EMPTY_ROOT


def prove_inclusion(index: int, size: int, subtree: Subtree) -> tuple[bytes, ...]:
    """Return the hashes that lead from a leaf to the root of `size` leaves, the lowest first.

    Raises ProofError if the tree has no such leaf.
    """
    if not 0 <= index < size:
        raise ProofError(f"a tree of {size} leaves has no leaf {index}")
    proof: list[bytes] = []
    begin, end = 0, size
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            proof.append(_range_root(middle, end, subtree))
            end = middle
        else:
            proof.append(_range_root(begin, middle, subtree))
            begin = middle
    return tuple(reversed(proof))


def prove_consistency(old: int, size: int, subtree: Subtree) -> tuple[bytes, ...]:
    """Return the hashes that show: the first `old` of `size` leaves are those of the older tree.

    Raises ProofError if the older tree is not smaller or equal, or has no leaf.
    """
    if not 0 < old <= size:
        raise ProofError(f"a tree of {old} leaves is no beginning of one of {size}")
    proof: list[bytes] = []
    begin, end = 0, size
    while end != old:
        middle = begin + _split(end - begin)
        if old <= middle:
            proof.append(_range_root(middle, end, subtree))
            end = middle
        else:
            proof.append(_range_root(begin, middle, subtree))
            begin = middle
    if begin:
        proof.append(_range_root(begin, end, subtree))
    return tuple(reversed(proof))


def verify_inclusion(
    leaf: bytes, index: int, size: int, root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that a leaf, given by its hash, is leaf `index` of the tree. Raises ProofError."""
    if not 0 <= index < size:
        raise ProofError(f"a tree of {size} leaves has no leaf {index}")
    _check_hashes(leaf, root, *proof)
    found, number, last = leaf, index, size - 1
    for one in proof:
        if not last:
            raise ProofError("the proof of inclusion is too long")
        if number & 1 or number == last:
            found = node_hash(one, found)
            while not number & 1 and number:
                number, last = number >> 1, last >> 1
        else:
            found = node_hash(found, one)
        number, last = number >> 1, last >> 1
    if last:
        raise ProofError("the proof of inclusion is too short")
    if found != root:
        raise ProofError(
            f"the proof leads to the root {found.hex()}, and the head of {size} leaves has "
            f"{root.hex()}: leaf {index} is not in that tree"
        )


def verify_consistency(
    old: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> None:
    """Check that the tree of `size` leaves begins with the older one. Raises ProofError."""
    if not 0 < old <= size:
        raise ProofError(f"a tree of {old} leaves is no beginning of one of {size}")
    _check_hashes(old_root, root, *proof)
    if old == size:
        if proof:
            raise ProofError("the proof of consistency is too long")
        if old_root != root:
            raise ProofError(f"two heads of {size} leaves have different roots")
        return
    found_old, found = _grown(old, old_root, size, proof)
    if found_old != old_root:
        raise ProofError(
            f"the proof leads to the root {found_old.hex()} of {old} leaves, and the older head "
            f"has {old_root.hex()}: history before it was changed"
        )
    if found != root:
        raise ProofError(
            f"the proof leads to the root {found.hex()} of {size} leaves, and the head has "
            f"{root.hex()}"
        )


def _grown(old: int, old_root: bytes, size: int, proof: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the older root and the root that a proof of consistency leads to."""
    hashes = list(proof)
    number, last = old - 1, size - 1
    while number & 1:
        number, last = number >> 1, last >> 1
    if number:
        if not hashes:
            raise ProofError("the proof of consistency is too short")
        found_old = found = hashes.pop(0)
    else:
        found_old = found = old_root
    for one in hashes:
        if not last:
            raise ProofError("the proof of consistency is too long")
        if number & 1 or number == last:
            found_old, found = node_hash(one, found_old), node_hash(one, found)
            while not number & 1 and number:
                number, last = number >> 1, last >> 1
        else:
            found = node_hash(found, one)
        number, last = number >> 1, last >> 1
    if last:
        raise ProofError("the proof of consistency is too short")
    return found_old, found


def _check_hashes(*hashes: bytes) -> None:
    if any(len(one) != HASH_BYTES for one in hashes):
        raise ProofError(f"a hash is not {HASH_BYTES} bytes long")


def _split(count: int) -> int:
    """Return the largest power of two below `count`, which is at least 2."""
    return 1 << (count - 1).bit_length() - 1


def _range_root(begin: int, end: int, subtree: Subtree) -> bytes:
    """Return the root over leaves [begin, end). `begin` is a multiple of the subtree's width."""
    count = end - begin
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return subtree(level, begin >> level)
    middle = begin + _split(count)
    return node_hash(_range_root(begin, middle, subtree), _range_root(middle, end, subtree))
