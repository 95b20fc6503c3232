"""Brings Kafka's jars, compiles an oracle's Java program, and talks to it line by line.

Rule: Maven fetches the jars that pom.xml names, and Java gets only files whose SHA-256 stands in
`jars.sha256`. They stay in the user's cache folder, so only the first run needs a network. One run
at a time looks into that folder and fills it, so that two runs don't take each other's jars away.

Whatever Java or Maven does, the caller gets a NoOracleError that says what happened.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final

HERE: Final = Path(__file__).parent
_FETCH_S: Final = 600
_COMPILE_S: Final = 120
_HEAP: Final = ("-Xmx512m", "-XX:+UseSerialGC")


class NoOracleError(Exception):
    """Kafka's classes can't be run here. The message says why and what to do."""


class Oracle:
    """A Java program that answers each line of text with one line."""

    def __init__(self, source: Path, main: str, jars: str = "") -> None:
        """Compile `source` with Kafka's jars and start its class `main`. Raises NoOracleError.

        `jars`: a class path of another Kafka release than that of pom.xml.
        """
        jars = jars or f"{kafka_jars()}{os.sep}*"
        self._folder = tempfile.TemporaryDirectory(prefix="oracle-")
        classes = Path(self._folder.name)
        try:
            _run([_tool("javac"), "-d", str(classes), "-cp", jars, str(source)], _COMPILE_S)
        except NoOracleError:
            self._folder.cleanup()
            raise
        self._complaints: IO[str] = (classes / "stderr").open("w+")
        self._process = subprocess.Popen(
            [_tool("java"), *_HEAP, "-cp", f"{classes}{os.pathsep}{jars}", main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
        )

    def __enter__(self) -> "Oracle":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._complaints.close()
        self._folder.cleanup()

    def ask(self, lines: Sequence[str], at_once: int = 200) -> list[str]:
        """Return the answers to these lines, in their order. Raises NoOracleError if Java ends.

        `at_once` lines are sent before their answers are read. They must fit into a pipe.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answers: list[str] = []
        for start in range(0, len(lines), at_once):
            some = lines[start : start + at_once]
            try:
                self._process.stdin.write("\n".join(some) + "\n\n")
                self._process.stdin.flush()
            except BrokenPipeError as error:
                raise NoOracleError(f"the oracle has ended: {self._said()}") from error
            for _ in some:
                answer = self._process.stdout.readline()
                if not answer:
                    raise NoOracleError(f"the oracle has ended: {self._said()}")
                answers.append(answer.rstrip("\n"))
        return answers

    def _said(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read()[-2000:]


def kafka_jars() -> Path:
    """Return a folder that holds Kafka's jars, each of them checked, and nothing else."""
    wanted = _checksums()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "logberg" / "oracles"
    cache.parent.mkdir(parents=True, exist_ok=True)
    with (cache.parent / "oracles.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _holds(cache, wanted):
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
            maven = [_tool("mvn"), "--batch-mode", "--quiet", "--file", str(HERE / "pom.xml")]
            _run([*maven, *goal, f"-DoutputDirectory={cache}"], _FETCH_S)
            if not _holds(cache, wanted):
                raise NoOracleError(f"the jars in {cache} are not those of {HERE / 'jars.sha256'}")
    return cache


def _checksums() -> dict[str, str]:
    lines = (HERE / "jars.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _holds(folder: Path, wanted: dict[str, str]) -> bool:
    if not folder.is_dir():
        return False
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    return found == wanted


def _tool(name: str) -> str:
    """Return the path of a program. Raises NoOracleError if it is not here."""
    path = shutil.which(name)
    if path is None:
        raise NoOracleError(
            f"'{name}' is not here. The oracles need a JDK 17 or later and Maven "
            "(Debian: apt install openjdk-17-jdk-headless maven)."
        )
    return path


def _run(command: list[str], most_s: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=most_s)
    except subprocess.TimeoutExpired as error:
        raise NoOracleError(
            f"{command[0]} did not end within {most_s:g} s. Run it again when the machine is idle."
        ) from error
    if done.returncode != 0:
        raise NoOracleError(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
