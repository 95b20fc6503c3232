"""The edge of the tree from a frontier on gives the roots of the whole tree, and nothing before."""

from random import Random

import pytest

from ledger.batch import Batch, parse
from ledger.edge_tree import EdgeTree
from ledger.errors import LedgerError
from ledger.merkle.frontier import Frontier
from ledger.merkle.hashing import leaf_hash
from tests.oracles.transparency.drawn_proofs import drawn_log

SIZE = 600
TREE, ENCODED = drawn_log(Random(3), SIZE)
BATCHES: list[Batch] = [parse(data) for data in ENCODED]


def frontier_of(size: int) -> Frontier:
    found = Frontier()
    for batch in BATCHES[:size]:
        found = found.append(leaf_hash(batch.hash))
    return found


@pytest.mark.parametrize("base", [0, 1, 63, 64, 100, 255, 256, 511])
def test_its_roots_are_those_of_the_whole_tree(base: int) -> None:
    edge = EdgeTree(Frontier.decode(frontier_of(base).encode()), base)
    for number, batch in enumerate(BATCHES[base:], start=base + 1):
        assert edge.append(batch)
        assert (edge.size, edge.end_offset) == (number, number)
    for size in range(max(1, base), SIZE + 1):
        assert edge.root(size) == TREE.roots[size]
    assert edge.frontier() == frontier_of(SIZE)


def test_it_takes_the_next_batch_only_and_knows_nothing_before() -> None:
    edge = EdgeTree(frontier_of(100), 100)
    assert not edge.append(BATCHES[101])
    assert edge.append(BATCHES[100])
    assert not edge.append(BATCHES[100])
    for size in (99, 102):
        with pytest.raises(LedgerError, match="100 to 101"):
            edge.root(size)


def test_it_forgets_roots_that_nobody_asks_for() -> None:
    random = Random(4)
    _, encoded = drawn_log(random, 64 * 70)
    edge = EdgeTree(Frontier(), 0)
    for data in encoded:
        edge.append(parse(data))
    assert edge.first == 64 * 7
    with pytest.raises(LedgerError):
        edge.root(64 * 7 - 1)
    tree, _ = drawn_log(Random(4), 64 * 70)
    for size in (64 * 7, 64 * 7 + 1, 64 * 70 - 1, 64 * 70):
        assert edge.root(size) == tree.roots[size]
