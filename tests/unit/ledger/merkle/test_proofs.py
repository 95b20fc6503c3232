"""Trees, proofs and tiles, held against the definitions of RFC 6962 and against each other."""

from hashlib import sha256
from random import Random

import pytest

from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from ledger.merkle.proofs import (
    ProofError,
    prove_consistency,
    prove_inclusion,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from ledger.merkle.tiles import TreeTile, entry_bundle, tiles_of
from tests.oracles.transparency.drawn_trees import DrawnTree, drawn_tree, questions, spoiled

SIZES = [*range(1, 20), 31, 32, 33, 255, 256, 257, 513]


def defined_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it stands there."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    left, right = defined_root(leaves[:half]), defined_root(leaves[half:])
    return sha256(b"\x01" + left + right).digest()


def test_roots_are_those_of_the_rfc() -> None:
    # The vectors that implementations of Certificate Transparency share.
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    data = [bytes.fromhex(text) for text in inputs]
    frontier = Frontier()
    for count in range(len(data) + 1):
        assert frontier.root() == defined_root(data[:count])
        if count < len(data):
            frontier = frontier.append(leaf_hash(data[count]))
    assert frontier.root().hex().startswith("ddb89be403809e32")


@pytest.mark.parametrize("size", SIZES)
def test_every_proof_of_a_small_tree_holds(size: int) -> None:
    tree = DrawnTree([bytes((number % 256,)) * 32 for number in range(size)])
    root = tree.frontier.root()
    assert root == defined_root(tree.leaves) == root_of(size, tree.subtree)
    assert Frontier.decode(tree.frontier.encode()) == tree.frontier
    for number in range(0, size, 1 if size < 40 else 17):
        leaf = leaf_hash(tree.leaves[number])
        verify_inclusion(leaf, number, size, root, prove_inclusion(number, size, tree.subtree))
        old = number + 1
        proof = prove_consistency(old, size, tree.subtree)
        verify_consistency(old, tree.roots[old], size, root, proof)


def test_what_is_spoiled_is_refused() -> None:
    random = Random(3)
    refused = 0
    for _ in range(150):
        for question in questions(random):
            if question["kind"] not in ("inclusion", "consistency"):
                continue
            _judge(question)
            with pytest.raises(ProofError):
                _judge(spoiled(random, question))
            refused += 1
    assert refused == 600


def _judge(question: dict) -> None:
    if question["kind"] == "inclusion":
        leaf = leaf_hash(question["leaf"])
        where = question["index"], question["size"]
        verify_inclusion(leaf, *where, question["root"], question["proof"])
    else:
        verify_consistency(
            question["old"],
            question["oldRoot"],
            question["size"],
            question["root"],
            question["proof"],
        )


def test_a_proof_for_another_place_is_refused() -> None:
    tree = drawn_tree(Random(5))
    size = tree.size
    proof = prove_inclusion(2, size, tree.subtree)
    for index in range(size):
        if index != 2:
            with pytest.raises(ProofError):
                verify_inclusion(
                    leaf_hash(tree.leaves[2]), index, size, tree.frontier.root(), proof
                )
    with pytest.raises(ProofError, match="no leaf"):
        prove_inclusion(size, size, tree.subtree)
    with pytest.raises(ProofError, match="no beginning"):
        prove_consistency(size + 1, size, tree.subtree)


@pytest.mark.parametrize("data", [b"", b"\x02" + bytes(8), b"\x01" + bytes(7) + b"\x03"])
def test_a_frontier_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(LedgerError):
        Frontier.decode(data)


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (TreeTile(0, 0), "tile/0/000"),
        (TreeTile(0, 0, 1), "tile/0/000.p/1"),
        (TreeTile(1, 999), "tile/1/999"),
        (TreeTile(2, 1000, 255), "tile/2/x001/000.p/255"),
        (TreeTile(0, 1234067), "tile/0/x001/x234/067"),
        (TreeTile(0, 1234067, 8, of_entries=True), "tile/entries/x001/x234/067.p/8"),
    ],
)
def test_paths_of_tiles(tile: TreeTile, path: str) -> None:
    assert tile.path == path
    assert TreeTile.parse(path) == tile


@pytest.mark.parametrize(
    "path",
    [
        "tile/0/1",
        "tile/0/0001",
        "tile/00/001",
        "tile/8/000",
        "tile/0/x000/001",
        "tile/0/001/002",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/257",
        "tile/0/000.p/01",
        "tile/x/000",
        "tile/0/../000",
        "tile/0/\u0660\u0660\u0660",
    ],
)
def test_what_is_no_path_of_a_tile(path: str) -> None:
    with pytest.raises(LedgerError):
        TreeTile.parse(path)


def test_tiles_since_a_size_are_those_that_changed() -> None:
    random = Random(7)
    for _ in range(200):
        since, size = sorted((random.randrange(200_000), random.randrange(200_000)))
        old, new = set(tiles_of(since)), set(tiles_of(size))
        assert set(tiles_of(size, since=since)) == new - old
        assert all(tile.lies_in(size) for tile in new)


def test_a_bundle_says_how_long_each_entry_is() -> None:
    assert entry_bundle([b"ab", b""]) == b"\x00\x02ab\x00\x00"
