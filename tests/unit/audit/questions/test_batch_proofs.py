"""Batch proofs are checked offline, and whatever was changed in one is found."""

from random import Random

import msgspec
import pytest

from audit.questions.batch_proofs import ProofRefusedError, check_proof, read_proof
from ledger.merkle.heads import origin_of
from ledger.merkle.notes import SigningKey
from tests.oracles.transparency.drawn_proofs import (
    KEYS,
    ORIGIN,
    drawn_log,
    proof_of,
    signed_head,
    spoil,
)

TREE, ENCODED = drawn_log(Random(1), 300)


def check(proof, keys=KEYS):
    return check_proof(read_proof(msgspec.json.encode(proof)), keys)


@pytest.mark.parametrize(("index", "size", "old"), [(0, 1, 0), (0, 300, 1), (299, 300, 299)])
def test_a_right_proof_says_what_it_shows(index: int, size: int, old: int) -> None:
    found = check(proof_of(TREE, ENCODED, index, size, old))
    assert (found.offset, found.leaf, found.head.size) == (index, index, size)
    assert found.batch.encoded == ENCODED[index]
    assert found.signers == tuple(KEYS[1:])
    assert (found.older.size if found.older else 0) == old


def test_ten_thousand_changes_are_all_found() -> None:
    random = Random(2)
    kinds = set()
    for number in range(10_000):
        if number % 100 == 0:
            size = random.randrange(2, 301)
            old = random.randrange(1, size)
            right = proof_of(TREE, ENCODED, random.randrange(size), size, old)
            check(right)
        name, bad = spoil(random, right)
        with pytest.raises(ProofRefusedError):
            check(bad)
        kinds.add(name)
    assert kinds == {field for field, value in right.items() if value not in ([], "")}


def test_each_step_that_fails_is_named() -> None:
    right = proof_of(TREE, ENCODED, 7, 300, 100)
    for changes, step in (
        ({"format": 2}, "file: its format"),
        ({"batch": right["batch"][:-4]}, "batch: "),
        ({"offset": 8}, "batch: it holds offsets 7 to 7"),
        ({"clusterId": "another"}, "head: it is of"),
        ({"head": right["head"].replace("\n300\n", "\n301\n")}, "head: the signature"),
        ({"leafIndex": 8}, "inclusion: the proof leads to the root"),
        ({"inclusion": right["inclusion"][:-1]}, "inclusion: the proof of inclusion is too short"),
        ({"consistency": right["consistency"][1:]}, "consistency: "),
        ({"olderHead": signed_head(TREE, 99)}, "consistency: it begins at 100 batches"),
    ):
        with pytest.raises(ProofRefusedError) as refused:
            check(right | changes)
        assert str(refused.value).startswith(step)


def test_history_that_was_changed_before_the_older_head_is_named() -> None:
    other, _ = drawn_log(Random(9), 300)
    right = proof_of(TREE, ENCODED, 7, 300, 100)
    with pytest.raises(ProofRefusedError, match=r"consistency: .* history before it was changed"):
        check(right | {"olderHead": signed_head(other, 100)})


def test_one_stolen_key_proves_nothing() -> None:
    proof = proof_of(TREE, ENCODED, 7, 300, 0)
    lines = proof["head"].split("\n")
    stolen = proof | {"head": "\n".join([*lines[:5], ""])}
    with pytest.raises(ProofRefusedError, match="head: 1 of 3 keys signed"):
        check(stolen)
    strangers = [SigningKey(ORIGIN, bytes((9, number)) * 16).public for number in range(3)]
    with pytest.raises(ProofRefusedError, match="head: 0 of 3 keys signed"):
        check(proof, strangers)
    foreign = [SigningKey(origin_of("x"), bytes(32)).public]
    with pytest.raises(ProofRefusedError, match="head: none of the keys is of"):
        check(proof, foreign)


def test_a_file_is_text_in_unknown_fields_too() -> None:
    """The verifier that stands alone refuses such a file, so this one must not believe it."""
    text = msgspec.json.encode(proof_of(TREE, ENCODED, 7, 300, 0))
    with_more = text[:-1] + b', "a note": "\xc3\xa9"}'
    check_proof(read_proof(with_more), KEYS)
    for bad in (b'"\x80": 1', b'"a note": "\x80"', b'"a note": "\xed\xa0\x80"'):
        with pytest.raises(ProofRefusedError, match=r"^file: it is no batch proof: 'utf-8'"):
            read_proof(text[:-1] + b", " + bad + b"}")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"format": 1}', b"x" * 5_000_000])
def test_what_is_no_proof(data: bytes) -> None:
    with pytest.raises(ProofRefusedError, match=r"^file: "):
        read_proof(data)
