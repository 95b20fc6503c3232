"""The checker of batch proofs that stands alone: it finds what the product's finds."""

import ast
import json
import sys
from pathlib import Path
from random import Random

import pytest

from ledger.merkle.notes import SigningKey
from tests.oracles.transparency.drawn_proofs import KEYS, drawn_log, proof_of, spoil
from tests.verifier.program import CHECKER, checker

TREE, ENCODED = drawn_log(Random(1), 120)
LINES = [key.text for key in KEYS]


def test_it_needs_the_standard_library_alone() -> None:
    tree = ast.parse(CHECKER.read_text(encoding="utf-8"))
    names = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= sys.stdlib_module_names


def test_its_ed25519_is_that_of_others() -> None:
    # The second vector of RFC 8032, section 7.1.
    alone = checker()
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert alone.is_signed(public, b"\x72", signature)
    assert not alone.is_signed(public, b"\x73", signature)
    random = Random(4)
    for _ in range(10):
        key = SigningKey("k", random.randbytes(32))
        text = f"{random.random()}\n"
        made = key.sign(text).signature
        assert alone.is_signed(key.public.public, text.encode(), made)
        at = random.randrange(64)
        bad = made[:at] + bytes((made[at] ^ 1,)) + made[at + 1 :]
        assert not alone.is_signed(key.public.public, text.encode(), bad)
    # A scalar beyond the group's order would be a second signature of the same text.
    scalar = int.from_bytes(made[32:], "little") + alone.L
    assert not alone.is_signed(
        key.public.public, text.encode(), made[:32] + scalar.to_bytes(32, "little")
    )


def test_right_proofs_hold_and_changed_ones_do_not() -> None:
    alone = checker()
    keys = [alone.read_key(line) for line in LINES]
    random = Random(5)
    for number in range(150):
        size = random.randrange(2, 121)
        old = random.randrange(1, size + 1)
        right = proof_of(TREE, ENCODED, random.randrange(size), size, old)
        if number % 10 == 0:
            assert len(alone.check(right, keys)) == 8
        _, bad = spoil(random, right)
        with pytest.raises((alone.RefusedError, ValueError)):
            alone.check(bad, keys)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = checker()
    file, key = tmp_path / "proof.json", tmp_path / "head.pub"
    file.write_text(json.dumps(proof_of(TREE, ENCODED, 3, 100, 50)))
    key.write_text(LINES[0] + "\n")
    keys = ["--key", str(key), "--key", LINES[1], "--key", LINES[2]]
    assert alone.main([str(file), *keys]) == 0
    assert "the first 50 batches are those of the older head" in capsys.readouterr().out
    file.write_text(json.dumps(proof_of(TREE, ENCODED, 3, 100, 50) | {"leafIndex": 4}))
    assert alone.main([str(file), *keys]) == 1
    assert "REFUSED: inclusion" in capsys.readouterr().out
    right = proof_of(TREE, ENCODED, 3, 100, 50)
    for bad in (
        b"{}",
        b"[" * 100_000,
        b"1",
        b"\xff",
        json.dumps(right | {"leafIndex": 3.0}).encode(),
        json.dumps(right | {"leafIndex": 2.5}).encode(),
        json.dumps(right | {"format": True}).encode(),
        json.dumps(right | {"inclusion": [1]}).encode(),
        json.dumps(right).encode("utf-16"),
    ):
        file.write_bytes(bad)
        assert alone.main([str(file), *keys]) == 2
        assert "it can't be read: " in capsys.readouterr().out
    assert alone.main([str(tmp_path / "none"), *keys]) == 2
