"""Three real controllers sign heads; a proof is written, and checked by us, alone, and by Go."""

import base64
import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.tools import NoToolError
from ledger.batch import parse
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import NoteKey, SignedNote
from tests.oracles.transparency.judge import ask, judge
from tests.process.running_cluster import RunningCluster, logberg, running
from tests.verifier.program import CHECKER

pytestmark = pytest.mark.process


def kept_head(cluster: RunningCluster, node: int, above: int = 0) -> bytes:
    """The head that a controller serves, once it covers more batches than `above`."""

    def look() -> bytes:
        try:
            answer = cluster.ask(cluster.url(node), "GET", "/checkpoint")
        except OSError:
            return b""  # it is starting
        if answer.status != 200:
            return b""
        body: bytes = answer.body
        return body if TreeHead.parse(SignedNote.parse(body).text).size > above else b""

    return cluster.until(look, "a signed head")


def judged(proof: dict) -> list[str]:
    """What Go says of the parts of a proof."""
    head = TreeHead.parse(SignedNote.parse(proof["head"].encode()).text)
    older = TreeHead.parse(SignedNote.parse(proof["olderHead"].encode()).text)
    batch = parse(base64.b64decode(proof["batch"]))
    return ask(
        judge(),
        [
            {
                "kind": "inclusion",
                "index": proof["leafIndex"],
                "size": head.size,
                "leaf": batch.hash,
                "root": head.root,
                "proof": proof["inclusion"],
            },
            {
                "kind": "consistency",
                "old": older.size,
                "size": head.size,
                "oldRoot": older.root,
                "root": head.root,
                "proof": proof["consistency"],
            },
        ],
    )


def test_a_proof_of_a_real_cluster_is_checked_by_three(tmp_path: Path) -> None:
    with running(tmp_path, brokers=1, signed_head_ms=500) as cluster:
        keys = [cluster.data(n) / "head.pub" for n in (1, 2, 3)]
        for n in (1, 2, 3):
            mode = (cluster.data(n) / "head.key").stat().st_mode
            assert stat.S_IMODE(mode) == 0o600
        older = kept_head(cluster, 1)
        (tmp_path / "older").write_bytes(older)
        cluster.create("orders")
        size = TreeHead.parse(SignedNote.parse(older).text).size
        head = kept_head(cluster, cluster.standby(), size)
        known = [NoteKey.parse(key.read_text()) for key in keys]
        cluster_id = known[0].name.removeprefix("logberg/")
        assert believed_head(SignedNote.parse(head), origin_of(cluster_id), known).size > size
        said = cluster.command(
            *("audit", "prove", "3", "--data", str(tmp_path)),
            *("--older", str(tmp_path / "older"), "--out", str(tmp_path / "proof.json")),
        )
        assert said.code == 0, said
    options = [text for key in keys for text in ("--key", str(key))]
    checked = logberg("audit", "check-proof", str(tmp_path / "proof.json"), *options, cwd=tmp_path)
    assert checked.code == 0, checked
    assert "RIGHT: offset 3" in checked.out
    alone = subprocess.run(
        [sys.executable, "-I", "-S", str(CHECKER), str(tmp_path / "proof.json"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (alone.returncode, alone.stderr) == (0, "")
    proof = json.loads((tmp_path / "proof.json").read_text())
    try:
        assert judged(proof) == ["", ""]
    except NoToolError as error:
        pytest.skip(str(error))


def test_a_restarted_controller_keeps_its_key_and_signs_again(tmp_path: Path) -> None:
    with running(tmp_path, brokers=1, signed_head_ms=500) as cluster:
        before = kept_head(cluster, 1)
        key = (cluster.data(1) / "head.key").read_bytes()
        child = cluster.controller(1)
        child.kill()
        child.start()
        cluster.create("orders")
        size = TreeHead.parse(SignedNote.parse(before).text).size
        note = SignedNote.parse(kept_head(cluster, 1, size))
        assert (cluster.data(1) / "head.key").read_bytes() == key
        known = [NoteKey.parse((cluster.data(n) / "head.pub").read_text()) for n in (1, 2, 3)]
        assert len(note.signers(known)) >= 2
