"""`audit prove` writes what controllers answer; `audit check-proof` says whether it holds."""

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from logberg.cli.command_tree import cli
from tests.oracles.transparency.drawn_proofs import KEYS, drawn_log, proof_of, signed_head
from tests.oracles.transparency.drawn_trees import DrawnTree
from tests.unit.logberg.listener import Listener

TREE, ENCODED = drawn_log(Random(1), 60)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["audit", *arguments])
    return result.exit_code, result.output


def keys() -> list[str]:
    Path("head.pub").write_text(KEYS[0].text + "\n")
    options = ["--key", "head.pub"]
    return [*options, "--key", KEYS[1].text, "--key", KEYS[2].text]


def test_a_proof_that_holds_says_who_and_when() -> None:
    Path("p.json").write_text(json.dumps(proof_of(TREE, ENCODED, 7, 60, 30)))
    code, said = run("check-proof", "p.json", *keys())
    assert code == 0
    assert "RIGHT: offset 7 is in the log" in said
    assert "principal: User:alice" in said
    assert "the first 30 batches are those of the older head" in said
    code, said = run("check-proof", "p.json", *keys(), "--output", "json")
    found = json.loads(said)
    assert (found["leafIndex"], found["headSize"], found["olderSize"]) == (7, 60, 30)
    assert found["signedBy"] == [key.text for key in KEYS[1:]]


def test_what_fails_is_named() -> None:
    proof = proof_of(TREE, ENCODED, 7, 60, 30)
    Path("p.json").write_text(json.dumps(proof | {"leafIndex": 8}))
    code, said = run("check-proof", "p.json", *keys())
    assert code == 1
    assert "REFUSED: inclusion" in said
    for wrong in (["--key", "no-file"], ["--key", "a+b+c"], ["--key", "p.json"]):
        assert run("check-proof", "p.json", *wrong)[0] == 1


def test_a_forged_cause_does_not_control_the_terminal() -> None:
    mark = LogMark.beginning("x")
    who = Provenance(principal="User:\x1b[2J\u202e", reason="\nRIGHT: all is well")
    batch = seal(BatchHeader(0, 1, 1, 1, who, mark.head), b"\x91\x01")
    tree = DrawnTree([batch.hash])
    Path("p.json").write_text(json.dumps(proof_of(tree, [batch.encoded], 0, 1, 0)))
    code, said = run("check-proof", "p.json", *keys())
    assert code == 0
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\nRIGHT: all is well" not in said


def test_a_proof_is_written_once_and_with_the_older_head() -> None:
    Path("older").write_text(signed_head(TREE, 30))
    answer = proof_of(TREE, ENCODED, 7, 60, 30) | {"olderHead": ""}
    listener = Listener()
    listener.body = json.dumps(answer).encode()
    where = ["--controllers", listener.url]
    code, said = run("prove", "7", "--older", "older", "--out", "p.json", *where)
    assert code == 0, said
    assert "batch 7 of the log, under a head of 60 batches" in said
    assert b"GET /v1/proofs/7?olderSize=30 " in listener.heard
    code, said = run("prove", "7", "--out", "p.json", *where)
    assert code == 1
    assert "can't be written" in said
    Path("bad").write_text("no head")
    assert run("prove", "7", "--older", "bad", *where)[0] == 1
    assert run("check-proof", "p.json", *keys())[0] == 0
