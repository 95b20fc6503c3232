"""Fetches and builds the peers and the load generator, by Go's module proxy and by Maven.

Rule: the releases stand in `go/*/go.mod`, `go.sum` and `jvm/pom.xml`. The results stay in the
user's cache folder, so only the first run needs a network and some minutes. The tests of
coordination take their servers from here too.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

HERE: Final = Path(__file__).parent
_MOST_S: Final = 900


class NoToolError(Exception):
    """A peer can't be had on this machine. The message says why and what to do."""


def go_program(name: str, source: Path | None = None) -> Path:
    """Return the program of a Go module, built if its sources changed. Raises NoToolError.

    `source`: the module's folder; None: `go/<name>` here.
    """
    source = source or HERE / "go" / name
    program = cache() / f"{name}-{_digest(source)}"
    if not program.is_file():
        _say(f"building {name} …")
        go = _found("go", "Go 1.26 or later: https://go.dev/dl")
        made = program.with_suffix(".new")
        _run([go, "build", "-o", str(made), "."], source)
        made.replace(program)
    return program


def jars(profile: str) -> Path:
    """The folder with the jars of one profile of `jvm/pom.xml`. Raises NoToolError."""
    pom = HERE / "jvm" / "pom.xml"
    folder = cache() / f"{profile}-{_profile_digest(pom, profile)}"
    if not folder.is_dir():
        _say(f"fetching {profile} …")
        maven = _found("mvn", "Maven (Debian: apt install maven)")
        fresh = folder.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command = [maven, "--batch-mode", "--quiet", "--file", str(pom), "-P", profile, *goal]
        _run([*command, f"-DoutputDirectory={fresh}"], HERE)
        fresh.rename(folder)
    return folder


def java() -> str:
    """The program that runs jars. Raises NoToolError."""
    return _found("java", "a JDK 17 or later (Debian: apt install openjdk-17-jdk-headless)")


def cache() -> Path:
    """Return the folder in which what was fetched or built is kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "logberg" / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest(source: Path) -> str:
    summed = hashlib.sha256()
    for path in sorted(source.iterdir()):
        summed.update(path.name.encode() + b"\0" + path.read_bytes())
    return summed.hexdigest()[:12]


def _profile_digest(pom: Path, profile: str) -> str:
    """Name the content of one profile, so that a change of another fetches nothing anew."""
    space = {"pom": "http://maven.apache.org/POM/4.0.0"}
    found = [
        node
        for node in ET.parse(pom).iterfind("pom:profiles/pom:profile", space)
        if node.findtext("pom:id", namespaces=space) == profile
    ]
    return hashlib.sha256(ET.tostring(found[0])).hexdigest()[:12]


def _found(name: str, what: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NoToolError(f"{name!r} is not here. The comparison needs {what}.")
    return path


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_MOST_S
    )
    if done.returncode != 0:
        raise NoToolError(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
