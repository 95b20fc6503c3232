"""The page that checks receipts: Node runs its script; it finds what the other checkers find.

A browser opens the page in `tests/report/test_receipt_in_browser.py`.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.oracles.transparency.drawn_proofs import KEYS, drawn_log, proof_of, spoil

PAGE = Path(__file__).parents[2] / "verifier" / "logberg_receipt.html"
TREE, ENCODED = drawn_log(Random(1), 120)
LINES = [key.text for key in KEYS]
_HARNESS = """
const asked = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
(async () => {
  const said = [];
  for (const one of asked.proofs) said.push(await verdict(one, asked.keys));
  process.stdout.write(JSON.stringify(said));
})();
"""


def said_of(proofs: list[str], keys: list[str] = LINES) -> list[tuple[str, str]]:
    """What the page's script says of each receipt. Skips without Node or its Ed25519."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node is here to run the page's script")
    found = re.search(r'<script id="checker">(.*?)</script>', PAGE.read_text(), re.DOTALL)
    assert found is not None
    ran = subprocess.run(
        [node, "-e", found[1] + _HARNESS],
        input=json.dumps({"proofs": proofs, "keys": keys}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return [(kind, text) for kind, text in json.loads(ran.stdout)]


def test_right_receipts_hold_and_changed_ones_do_not() -> None:
    random = Random(6)
    right, bad = [], []
    for _ in range(60):
        size = random.randrange(2, 121)
        old = random.randrange(1, size)
        proof = proof_of(TREE, ENCODED, random.randrange(size), size, old)
        right.append(json.dumps(proof))
        bad += [json.dumps(spoil(random, proof)[1]) for _ in range(10)]
    said = said_of(right + bad)
    assert {kind for kind, _ in said[: len(right)]} == {"right"}
    assert "right" not in {kind for kind, _ in said[len(right) :]}


def test_it_says_who_when_and_what() -> None:
    ((kind, text),) = said_of([json.dumps(proof_of(TREE, ENCODED, 7, 60, 30))])
    assert kind == "right"
    for piece in (
        "offset 7 is in the log of",
        'principal: "User:alice"',
        'operation: "CreateTopics"',
        'reason: "because"',
        "under a head of 60 batches that 2 keys signed",
        "the first 30 batches are those of the older head",
    ):
        assert piece in text
    assert re.search(r"time: 1970-01-01T00:00:00\.\d{3}Z", text)


def test_too_few_or_wrong_keys_and_nonsense_are_refused() -> None:
    proof = json.dumps(proof_of(TREE, ENCODED, 7, 60, 0))
    more = [*LINES, *(line.replace("logberg/", "logberg/x") for line in LINES)]
    assert said_of([proof], [LINES[0]])[0][0] == "refused"
    assert said_of([proof], more)[0][0] == "refused"
    assert [kind for kind, _ in said_of(["", "null", "{}", "[1]", "7"])] == [
        "unreadable",
        *("refused",) * 4,
    ]


def test_the_page_asks_nobody() -> None:
    text = PAGE.read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|fetch\(|XMLHttp|WebSocket|import\(|src=", text)
