"""A log against heads that were kept: which count, and what a difference is said to be."""

import pytest

from audit.questions.kept_heads import KeptHeadFiles, compare_with_heads
from ledger.merkle.heads import TreeHead
from ledger.merkle.notes import SignedNote, SigningKey
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.rewrites.forging import forged_log, true_log
from tests.rewrites.parties import ALL, KEYS, ORIGIN, note_of
from tests.unit.broker_agent.fake_cluster import CLUSTER_ID

PUBLIC = [key.public for key in KEYS]
TRUE = true_log(30)
TREE = DrawnTree([batch.hash for batch in TRUE])


def heads(*sizes: int, by: frozenset[int] = ALL) -> dict[str, bytes]:
    return {str(size): note_of(TREE, size, by) for size in sizes}


def signed_by_all(head: TreeHead) -> bytes:
    keys = [SigningKey(head.origin, bytes((number,)) * 32) for number in (1, 2, 3)]
    note = SignedNote(head.text, tuple(key.sign(head.text) for key in keys))
    return note.encode().encode()


def test_with_heads_alone_the_difference_lies_between_two_of_them() -> None:
    kept = KeptHeadFiles(heads(5, 10, 20, 30))
    for at in range(30):
        found = compare_with_heads(forged_log(TRUE, at, 0), CLUSTER_ID, kept, PUBLIC)
        assert found.first_wrong_batch is None
        assert found.wrong_between is not None
        low, high = found.wrong_between
        assert low <= at < high
        assert found.newest_held == low
        assert f"one of {low} to {high - 1}" in found.problem


def test_a_log_that_ends_before_a_head_is_not_its_log() -> None:
    found = compare_with_heads(TRUE[:12], CLUSTER_ID, KeptHeadFiles(heads(10, 20)), PUBLIC)
    assert (found.ok, found.held, found.wrong_between) == (False, 1, (10, 20))


@pytest.mark.parametrize("by", [ALL, frozenset((1, 2))])
@pytest.mark.parametrize(
    ("ours", "theirs", "between"),
    [
        ((10,), 10, (0, 10)),
        ((2, 5, 10), 10, (5, 10)),
        ((5, 20), 10, (5, 10)),
        ((30,), 4, (0, 4)),
        ((), 10, (0, 10)),
    ],
    ids=["of one size", "of one size, after others", "the other is older", "first", "alone"],
)
def test_heads_of_two_histories_are_named(
    ours: tuple[int, ...], theirs: int, between: tuple[int, int], by: frozenset[int]
) -> None:
    """Whoever has a majority of the keys signs another head, and hides no difference by that."""
    other = DrawnTree([batch.hash for batch in forged_log(TRUE, 3, 0)])
    notes = heads(*ours) | {"theirs": note_of(other, theirs, by)}
    found = compare_with_heads(TRUE, CLUSTER_ID, KeptHeadFiles(notes), PUBLIC)
    assert (found.ok, found.held, found.wrong_between) == (False, len(ours), between)
    assert found.signed_twice == (theirs if ours else None)
    assert ("signed two histories" in found.problem) == bool(ours)
    # With the other history's hashes the batch is known.
    hashes = b"".join(other.leaves[:theirs])
    found = compare_with_heads(TRUE, CLUSTER_ID, KeptHeadFiles(notes, hashes), PUBLIC)
    assert found.first_wrong_batch == 3
    assert found.problem


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"nonsense",
        note_of(TREE, 10, frozenset((1,))),
        note_of(TREE, 10, ALL)[:-5],
        signed_by_all(TreeHead(ORIGIN, 0, bytes(32))),
        signed_by_all(TreeHead("logberg/other", 3, bytes(32))),
    ],
)
def test_a_head_that_proves_nothing_of_this_cluster_does_not_count(note: bytes) -> None:
    found = compare_with_heads(TRUE, CLUSTER_ID, KeptHeadFiles({"x": note}), PUBLIC)
    assert (found.ok, found.heads) == (False, 0)
    assert "no kept head counts" in found.problem
    assert found.refused["x"]


def test_hashes_that_no_head_covers_are_not_believed() -> None:
    forged = forged_log(TRUE, 15, 0)
    hashes = b"".join(TREE.leaves[:10]) + b"".join(batch.hash for batch in forged[10:])
    kept = KeptHeadFiles(heads(10, 20), hashes)
    found = compare_with_heads(TRUE, CLUSTER_ID, kept, PUBLIC)
    assert found.ok
    found = compare_with_heads(forged, CLUSTER_ID, kept, PUBLIC)
    assert (found.ok, found.first_wrong_batch, found.wrong_between) == (False, None, (10, 20))
    assert f"logberg/{CLUSTER_ID}" == ORIGIN
