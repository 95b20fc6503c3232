"""A real `logberg witness`, and real controllers that show it their heads."""

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.signing.head_drop import head_name, head_sizes
from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import COSIGNATURE, NoteKey, SignedNote, SigningKey
from ledger.merkle.submissions import PATH, SIZE_TYPE, path_of, read_cosignatures
from logberg.local.child import Child
from logberg.local.toml_text import to_toml
from tests.conformance.ports import free_port
from tests.process.running_cluster import RunningCluster, logberg
from tests.unit.logberg.witness.submitting import KEYS, ORIGIN, SubmittingLog

pytestmark = pytest.mark.process


class RunningWitness:
    """A witness as a process of its own, on loopback."""

    def __init__(self, folder: Path, name: str = "witness.example/one") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port, self.name = folder, free_port(), name
        file = folder / "witness.toml"
        self.url = f"http://127.0.0.1:{self.port}"
        self.child = Child("witness", ["witness", "--config", str(file)], folder / "output.log")
        # Whoever configures controllers needs the key before the witness runs.
        seed = bytes((9,)) * 32
        data = folder / "data"
        if not (data / "witness.key").exists():
            data.mkdir(mode=0o700)
            (data / "state.json").write_text('{"format":1,"logs":{}}')
            (data / "witness.key").write_text(f"{seed.hex()}\n")
            (data / "witness.key").chmod(0o600)
        self.key = SigningKey(name, seed, COSIGNATURE).public

    def know(self, keys: list[str]) -> "RunningWitness":
        """Write its file: the keys of the log that it is to cosign."""
        settings = {
            "name": self.name,
            "data": "data",
            "listen": f"127.0.0.1:{self.port}",
            "logs": [{"keys": keys}],
        }
        (self.folder / "witness.toml").write_text(to_toml(settings))
        return self

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body or None)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read(), found
        finally:
            connection.close()

    def begin(self) -> None:
        self.child.start()
        for _ in range(400):
            assert self.child.running, self.child.last_words(20)
            try:
                if self.ask("GET", "/health")[0] == 200:
                    return
            except OSError:
                self.child.wait(0.05)
        raise AssertionError(self.child.last_words(20))

    def size(self, origin: str) -> int:
        status, body, _ = self.ask("GET", path_of(origin))
        return TreeHead.parse(SignedNote.parse(body).text).size if status == 200 else 0


@contextmanager
def running_witness(folder: Path, keys: list[str]) -> Iterator[RunningWitness]:
    witness = RunningWitness(folder).know(keys)
    try:
        witness.begin()
        yield witness
    finally:
        witness.child.kill()


def test_a_real_witness_cosigns_and_refuses_over_http_and_after_a_kill(tmp_path: Path) -> None:
    log = SubmittingLog()
    with running_witness(tmp_path / "w", [key.public.text for key in KEYS]) as witness:
        assert witness.ask("GET", path_of(ORIGIN))[0] == 404
        status, body, _ = witness.ask("POST", PATH, log.submission(0, 100))
        assert status == 200
        (one,) = read_cosignatures(body)
        assert witness.key.verifies(log.head(100).text, one.signature)
        # It answered, so it must know after a kill.
        witness.child.kill()
        witness.begin()
        status, body, headers = witness.ask("POST", PATH, log.submission(0, 100))
        assert (status, body, headers["content-type"]) == (409, b"100\n", SIZE_TYPE)
        forged = SubmittingLog(seed=2, same=log, until=60)
        assert witness.ask("POST", PATH, forged.submission(100, 200))[0] == 422
        assert witness.ask("POST", PATH, b"nonsense")[0] == 400
        assert witness.ask("POST", PATH, log.submission(100, 200, KEYS[:1]))[0] == 403
        assert witness.ask("GET", PATH)[0] == 405
        assert witness.ask("POST", PATH, log.submission(100, 200))[0] == 200
        note = SignedNote.parse(witness.ask("GET", path_of(ORIGIN))[1])
        assert note.signers([witness.key]) == (witness.key,)
        assert believed_head(note, ORIGIN, [key.public for key in KEYS]) == log.head(200)
        figures = witness.ask("GET", "/metrics")[1].decode()
        assert 'logberg_witness_submissions_total{outcome="contradicts"} 1' in figures
        assert f'logberg_witness_batches{{origin="{ORIGIN}"}} 200' in figures
        assert NoteKey.parse(witness.ask("GET", "/")[1].decode()) == witness.key
        # Keys that are gone are believed no more once it has read its file again.
        witness.know([KEYS[2].public.text])
        witness.child.signal(signal.SIGHUP)
        for _ in range(100):
            if witness.ask("POST", PATH, log.submission(200, 300))[0] == 403:
                break
            witness.child.wait(0.05)
        assert witness.ask("POST", PATH, log.submission(200, 300, KEYS[2:]))[0] == 200
        # A second one on the same folder would cosign by an older state.
        said = logberg("witness", "--config", str(witness.folder / "witness.toml"), cwd=tmp_path)
        assert said.code != 0
        assert "another process" in said.err or "in use" in said.err, said
        witness.child.signal(signal.SIGTERM)
        assert witness.child.wait(10)
        assert witness.child.exit_code == 0
    events = [json.loads(line) for line in (tmp_path / "w" / "output.log").read_text().splitlines()]
    assert any(event["event"] == "submission_contradicts" for event in events)


def witnessed(folder: Path, **settings: Any) -> tuple[RunningCluster, list[NoteKey]]:
    """A cluster that is not started, and the keys with which it will sign heads."""
    cluster = RunningCluster(folder, 3, settings.pop("brokers", 1), **settings)
    keys = []
    for n in (1, 2, 3):
        data = cluster.data(n)
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        seed = bytes((n,)) * 32
        (data / "head.key").write_text(f"{seed.hex()}\n")
        (data / "head.key").chmod(0o600)
        keys.append(SigningKey(f"logberg/{cluster.local.file.cluster_id}", seed).public)
    return cluster, keys


def test_real_controllers_are_witnessed_and_go_on_without(tmp_path: Path) -> None:
    witness = RunningWitness(tmp_path / "w")
    cluster, keys = witnessed(
        tmp_path / "c",
        signed_head_ms=300,
        witnesses={
            "needed": 2,
            "window_ms": 2_000,
            "servers": [{"url": witness.url, "key": witness.key.text}],
            "places": [{"to": str(tmp_path / "drop"), "every_ms": 300}],
        },
    )
    witness.know([key.text for key in keys])
    origin = keys[0].name
    try:
        witness.begin()
        cluster.start()
        cluster.create("orders")

        def cosigned_by(n: int) -> int:
            answer = cluster.ask(cluster.url(n), "GET", "/checkpoint")
            if answer.status != 200:
                return 0
            note = SignedNote.parse(answer.body)
            return TreeHead.parse(note.text).size if note.signers([witness.key]) else 0

        for n in (1, 2, 3):
            cluster.until(lambda n=n: cosigned_by(n), "a cosigned head is served")
        before = witness.size(origin)
        witness.child.kill()
        for number in range(5):
            cluster.create(f"without-{number}")
        cluster.until(
            lambda: "head_unwitnessed" in cluster.output("controller-1"), "it is said", 15
        )
        witness.begin()
        cluster.until(lambda: witness.size(origin) > before, "the witness has more", 70)
        kept = [path.name for path in (tmp_path / "drop").iterdir()]
        cluster.until(
            lambda: head_sizes([path.name for path in (tmp_path / "drop").iterdir()])[-1] > before,
            "the place has more",
        )
        newest = head_name(head_sizes(kept)[-1])
        note = SignedNote.parse((tmp_path / "drop" / newest).read_bytes())
        believed_head(note, origin, keys)
        cluster.check_nothing_lost()
    finally:
        cluster.kill()
        witness.child.kill()


def test_a_witness_without_what_it_needs_does_not_start(tmp_path: Path) -> None:
    said = logberg("witness", cwd=tmp_path)
    assert (said.code, "--config" in said.err) == (1, True)
    said = logberg("witness", "--name", "w", "--data", "d", cwd=tmp_path)
    assert "logs is empty" in said.err
    key = str(tmp_path / "nowhere.pub")
    said = logberg("witness", "--name", "w", "--data", "d", "--key", key, cwd=tmp_path)
    assert "can't be read" in said.err
