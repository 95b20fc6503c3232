"""Builds `litewitness` (filippo.io/torchwood) by Go's ordinary client, and runs it on loopback.

Rule: its release stands in `go/go.mod` and `go.sum`. It gets its key from an ssh-agent, as it
does at its makers'. All that runs ends with the `with` block.
"""

import base64
import hashlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks.peers.tools import NoToolError, cache
from ledger.merkle.hashing import EMPTY_ROOT
from ledger.merkle.notes import COSIGNATURE, NoteKey
from logberg.local.child import Child
from tests.conformance.ports import free_port

GO = Path(__file__).parent / "go"
MODULE = "filippo.io/torchwood"
_MOST_S = 380


class BuiltWitness(NamedTuple):
    """The program, and the folder with its makers' sources and test cases."""

    program: Path
    sources: Path


def built() -> BuiltWitness:
    """Return the program. Raises NoToolError if it is not built and can't be."""
    go = shutil.which("go")
    if go is None:
        raise NoToolError("litewitness needs Go 1.25 or later: https://go.dev/dl")
    digest = hashlib.sha256((GO / "go.sum").read_bytes()).hexdigest()[:12]
    program = cache() / f"litewitness-{digest}"
    if not program.is_file():
        made = program.with_suffix(".new")
        _go(go, "build", "-o", str(made), f"{MODULE}/cmd/litewitness")
        made.replace(program)
    sources = Path(_go(go, "list", "-m", "-f", "{{.Dir}}", MODULE).strip())
    return BuiltWitness(program, sources)


def _go(go: str, *arguments: str) -> str:
    done = subprocess.run(
        [go, *arguments], cwd=GO, capture_output=True, text=True, check=False, timeout=_MOST_S
    )
    if done.returncode != 0:
        raise NoToolError(f"go {arguments[0]} failed: {done.stderr[-2000:]}")
    return done.stdout


class LiteWitness(NamedTuple):
    """A running litewitness."""

    url: str
    key: NoteKey


@contextmanager
def running(folder: Path, keys: list[NoteKey], name: str) -> Iterator[LiteWitness]:
    """Run litewitness for one log with these keys."""
    found = built()
    database, socket = folder / "litewitness.db", folder / "agent"
    agent = Child("agent", ["-D", "-a", str(socket)], folder / "agent.log", ("ssh-agent",))
    port = free_port()
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    file = folder / "key"
    file.touch(mode=0o600)
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    # OpenSSH's fingerprint: of the kind and the key, each with its length before it.
    parts = (b"ssh-ed25519", public)
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    fingerprint = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    arguments = ["-name", name, "-db", str(database), "-ssh-agent", str(socket)]
    arguments += ["-key", f"SHA256:{fingerprint}", "-listen", f"127.0.0.1:{port}"]
    witness = Child("litewitness", arguments, folder / "output", (str(found.program),))
    try:
        agent.start()
        for _ in range(100):
            if socket.exists():
                break
            agent.wait(0.05)
        subprocess.run(
            ["ssh-add", "-q", str(file)],
            env={**os.environ, "SSH_AUTH_SOCK": str(socket)},
            check=True,
            timeout=10,
        )
        witness.start()
        _wait_for(port, witness)
        _add_log(database, keys)
        yield LiteWitness(f"http://127.0.0.1:{port}", NoteKey(name, public, COSIGNATURE))
    finally:
        witness.kill()
        agent.kill()


def _wait_for(port: int, witness: Child) -> None:
    for _ in range(200):
        assert witness.running, witness.last_words(20)
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status == 200:
                return
        except OSError:
            witness.wait(0.05)
        finally:
            connection.close()
    raise AssertionError(witness.last_words(20))


def _add_log(database: Path, keys: list[NoteKey]) -> None:
    """Let it know a log, as its `witnessctl` would, which can't be built from Go's proxy alone."""
    origin = keys[0].name
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        root = base64.b64encode(EMPTY_ROOT).decode()
        connection.execute("INSERT INTO log VALUES (?, 0, ?)", (origin, root))
        rows = [(origin, key.text) for key in keys]
        connection.executemany("INSERT INTO key VALUES (?, ?)", rows)
