"""`litewitness` cosigns our log, and our witness answers the cases of litewitness's own tests.

Opt-in, since the first run builds litewitness: `make witness`.
"""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from benchmarks.peers.tools import NoToolError
from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import COSIGNATURE, NoteKey, SignedNote, SigningKey
from ledger.merkle.submissions import SIZE_TYPE
from logberg.witness.state import WitnessState
from logberg.witness.witness import Witness, WitnessedLog
from runtime.disk.real import RealDisk
from tests.oracles.witness.hurl_cases import read_cases
from tests.oracles.witness.litewitness import built, running
from tests.process.test_witness import witnessed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("LOGBERG_WITNESS") != "1", reason="builds litewitness: make witness"
    ),
]


def test_our_witness_answers_the_cases_of_litewitness(tmp_path: Path) -> None:
    try:
        public, cases = read_cases(built().sources)
    except NoToolError as error:
        pytest.skip(str(error))
    assert len(cases) >= 9
    origin = f"sigsum.org/v1/tree/{sha256(public).hexdigest()}"
    disk = RealDisk(tmp_path)
    WitnessState.begin(disk)
    state = WitnessState(disk)
    key = SigningKey("example.com/witness", bytes(32), COSIGNATURE)
    state.open(key.public)
    log = WitnessedLog(origin, (NoteKey(origin, public),), 1)
    witness = Witness(key, [log], state, lambda: 1_700_000_000)
    for case in cases:
        judged = witness.add(case.body)
        assert judged.status == case.status, (case, judged)
        said = judged.body.decode()
        if case.is_whole:
            assert said == case.text
        elif judged.status != 404:
            # The words about an unknown log are each witness's own.
            assert case.text in said, (case, said)
        if judged.status == 409:
            assert judged.content_type == SIZE_TYPE
    newest = state.newest(origin)
    assert newest is not None
    assert newest.head.size == 5


def test_litewitness_cosigns_the_log_of_a_real_cluster(tmp_path: Path) -> None:
    name = "litewitness.example/one"
    cluster, keys = witnessed(tmp_path / "c", signed_head_ms=300)
    try:
        with running(tmp_path, keys, name) as witness:
            for n in (1, 2, 3):
                with (cluster.folder / "config" / f"controller-{n}.toml").open("a") as file:
                    file.write(
                        f'\n[[witnesses.servers]]\nurl = "{witness.url}"\n'
                        f'key = "{witness.key.text}"\n'
                    )
            cluster.start()

            def cosigned(n: int, above: int) -> int:
                answer = cluster.ask(cluster.url(n), "GET", "/checkpoint")
                if answer.status != 200:
                    return 0
                note = SignedNote.parse(answer.body)
                size = TreeHead.parse(note.text).size
                if size <= above or not note.signers([witness.key]):
                    return 0
                assert believed_head(note, keys[0].name, keys).size == size
                return size

            size = 0
            for number in range(3):
                cluster.create(f"t-{number}")
                size = cluster.until(lambda size=size: cosigned(1, size), "litewitness cosigned")
            for n in (2, 3):
                assert cluster.until(lambda n=n: cosigned(n, 0), "each serves a cosigned head")
    finally:
        cluster.kill()
