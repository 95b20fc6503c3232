"""The tree on disk: what it proves, what it keeps over a restart, and what it drops."""

from errno import ENOSPC
from random import Random

import pytest

from ledger.batch import Batch, BatchHeader, Provenance
from ledger.batch_tree import BATCHES, TILES, BatchTree
from ledger.errors import LedgerError
from ledger.merkle.hashing import leaf_hash, node_hash
from ledger.merkle.proofs import verify_consistency, verify_inclusion
from ledger.merkle.tiles import TreeTile, tiles_of
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.unit.ledger.ledger_world import Node


class World:
    def __init__(self) -> None:
        self.disk = Node().disk
        self.random = Random(1)
        self.batches: list[Batch] = []
        self.failed: list[OSError] = []
        self.tree = self.open()

    def open(self) -> BatchTree:
        self.tree = BatchTree.open(self.disk, self.failed.append)
        return self.tree

    def grow(self, count: int) -> None:
        for _ in range(count):
            base = self.batches[-1].header.end_offset if self.batches else 0
            header = BatchHeader(base, self.random.randrange(1, 4), 1, 0, Provenance(), b"")
            self.batches.append(Batch(header, b"", self.random.randbytes(32), b""))
        self.catch_up()

    def catch_up(self) -> None:
        for batch in self.batches:
            if batch.header.base_offset >= self.tree.end_offset:
                assert self.tree.append(batch)

    def check(self) -> None:
        tree, drawn = self.tree, DrawnTree([batch.hash for batch in self.batches])
        assert tree.size == drawn.size
        assert tree.frontier() == drawn.frontier
        assert tree.head == (self.batches[-1].hash if self.batches else None)
        for tile in tiles_of(tree.size):
            row = drawn.rows[tile.level][tile.number * 256 : tile.number * 256 + tile.width]
            assert tree.tile(tile) == b"".join(row)
        for _ in range(20):
            size = self.random.randrange(1, tree.size + 1)
            index, old = self.random.randrange(size), self.random.randrange(1, size + 1)
            root = tree.root(size)
            assert root == drawn.roots[size]
            proof = tree.inclusion(index, size)
            verify_inclusion(leaf_hash(self.batches[index].hash), index, size, root, proof)
            verify_consistency(old, drawn.roots[old], size, root, tree.consistency(old, size))
            header = self.batches[index].header
            for offset in (header.base_offset, header.end_offset - 1):
                found = tree.find(offset)
                assert found is not None
                assert found == (index, header.end_offset, self.batches[index].hash)


def test_a_tree_of_many_tiles_keeps_what_it_had_over_a_restart() -> None:
    world = World()
    for count in (1, 200, 55, 1, 700, 300):
        world.grow(count)
        world.check()
    world.tree.close()
    world.open()
    assert world.tree.size == 1257 // 256 * 256
    world.catch_up()
    world.check()
    assert not world.failed


def test_levels_above_the_second_are_made_and_made_again() -> None:
    # A tree of 256 * 256 batches would take long; so the leaves of the whole tiles are alike.
    world = World()
    same = bytes(32)
    for base in range(256 * 256 + 300):
        header = BatchHeader(base, 1, 1, 0, Provenance(), b"")
        assert world.tree.append(Batch(header, b"", same, b""))
    tree = world.tree
    expected = leaf_hash(same)
    hashes = [expected]
    for _ in range(16):
        expected = node_hash(expected, expected)
        hashes.append(expected)
    assert tree.tile(TreeTile(2, 0, 1)) == expected
    assert tree.tile(TreeTile(1, 0)) == hashes[8] * 256
    root = tree.root(256 * 256)
    assert root == expected
    frontier = tree.frontier()
    verify_consistency(
        256 * 256, root, tree.size, frontier.root(), tree.consistency(65536, tree.size)
    )
    tree.close()
    again = world.open()
    assert again.size == 257 * 256
    assert again.tile(TreeTile(2, 0, 1)) == expected
    assert again.root(65536) == root


@pytest.mark.parametrize("name", [BATCHES, TILES])
def test_damaged_tiles_are_dropped_and_made_again(name: str) -> None:
    world = World()
    world.grow(1100)
    world.tree.close()
    data = world.disk.read(name)
    at = len(data) // 2
    world.disk.replace(name, data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
    world.open()
    assert world.tree.size in (256, 512)
    world.catch_up()
    world.check()


def test_a_file_that_is_cut_off_counts_up_to_its_last_whole_tile() -> None:
    world = World()
    world.grow(1100)
    world.tree.close()
    data = world.disk.read(BATCHES)
    world.disk.replace(BATCHES, data[:-1])
    world.open()
    assert world.tree.size == 768
    world.catch_up()
    world.check()


def test_what_lies_behind_the_logs_end_is_cut() -> None:
    world = World()
    world.grow(1100)
    world.tree.cut(world.batches[-1].header.end_offset)
    assert world.tree.size == 1100
    world.tree.cut(world.batches[599].header.end_offset)
    assert world.tree.size == 512
    world.catch_up()
    world.check()
    world.tree.drop()
    assert (world.tree.size, world.tree.end_offset, world.tree.head) == (0, 0, None)
    world.catch_up()
    world.check()


def test_a_full_disk_costs_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.grow(300)
    file = world.tree._tiles

    def refuse(data: bytes) -> None:
        raise OSError(ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(type(file), "append", lambda self, data: refuse(data))
        world.grow(600)
        world.check()
    world.grow(300)
    world.check()
    assert world.disk.size(BATCHES) == 1024 * 40
    world.tree.close()
    assert world.open().size == 1024


def test_a_batch_that_is_not_the_next_is_refused() -> None:
    world = World()
    world.grow(3)
    assert not world.tree.append(world.batches[0])
    assert world.tree.size == 3
    assert world.tree.find(-1) is None
    assert world.tree.find(world.tree.end_offset) is None


def test_what_the_tree_does_not_have() -> None:
    world = World()
    world.grow(3)
    for call in (
        lambda: world.tree.root(4),
        lambda: world.tree.inclusion(3, 3),
        lambda: world.tree.inclusion(0, 4),
        lambda: world.tree.consistency(0, 3),
        lambda: world.tree.tile(TreeTile(0, 0, 4)),
        lambda: world.tree.tile(TreeTile(1, 0, 1)),
        lambda: world.tree.tile(TreeTile(0, 1, 1, of_entries=True)),
        lambda: world.tree.place(3),
    ):
        with pytest.raises(LedgerError):
            call()
    assert world.tree.root(0).hex().startswith("e3b0c442")
