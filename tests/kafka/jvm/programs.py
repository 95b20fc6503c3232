"""Compiles the Java programs of this folder against the jars of a Kafka version, and runs them.

Rule: each version's clients are those that talk to its brokers. A JDK is needed, not only a Java
runtime.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from logberg.kafka.broker_process import SMALL_HEAP
from logberg.kafka.jars import TOOLS, class_path, default_cache, kafka_jars
from logberg.kafka.java import java_for_kafka
from logberg.kafka.kafka_error import KafkaError

HERE: Final = Path(__file__).parent
_QUIET: Final = """\
<Configuration status="OFF"><Loggers><Root level="off"/></Loggers></Configuration>
"""
_COMPILE_S: Final = 120


class JavaPrograms:
    """The programs, compiled for one set of jars."""

    def __init__(self, jars: Sequence[Path]) -> None:
        """Raises KafkaError."""
        self._jars = class_path(list(jars))
        self._java = java_for_kafka().program
        sources = sorted(HERE.glob("*.java"))
        summed = hashlib.sha256(self._jars.encode())
        for source in sources:
            summed.update(source.read_bytes())
        self._classes = default_cache() / f"programs-{summed.hexdigest()[:12]}"
        if not self._classes.is_dir():
            self._compile(sources)

    def _compile(self, sources: Sequence[Path]) -> None:
        # /usr/bin/java of a Debian is a link to a runtime with a compiler beside it.
        compiler = self._java.resolve().with_name("javac")
        if not compiler.exists():
            raise KafkaError(f"{self._java} is a runtime only; the tests need a JDK 17 or later.")
        fresh = self._classes.with_suffix(".new")
        fresh.mkdir(parents=True, exist_ok=True)
        (fresh / "log4j2.xml").write_text(_QUIET)
        done = subprocess.run(
            [str(compiler), "-nowarn", "-cp", self._jars, "-d", str(fresh), *map(str, sources)],
            capture_output=True,
            text=True,
            timeout=_COMPILE_S,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaError(f"the Java programs can't be compiled: {done.stderr[-2000:]}")
        fresh.rename(self._classes)

    def line(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs a program."""
        path = f"{self._classes}:{self._jars}"
        quiet = f"-Dlog4j2.configurationFile={self._classes / 'log4j2.xml'}"
        return [str(self._java), *SMALL_HEAP, quiet, "-cp", path, program, *arguments]

    def run(self, program: str, *arguments: str, limit_s: float = 240.0) -> str:
        """Run a program to its end and return what it printed. Raises KafkaError if it failed."""
        done = subprocess.run(
            self.line(program, *arguments),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaError(f"{program} failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout


class KafkaTools:
    """Kafka's own command line tools of one version."""

    def __init__(self, version: str, folder: Path) -> None:
        """`folder` gets a file for their logging. Raises KafkaError."""
        self._jars = class_path(kafka_jars(version, wanted=TOOLS))
        self._java = java_for_kafka().program
        self._quiet = folder / "tools-log4j2.xml"
        self._quiet.write_text(_QUIET)

    def run(self, main: str, *arguments: str, limit_s: float = 90.0) -> str:
        """Return what a tool printed, errors too. `main`: its class below org.apache.kafka.tools.

        A tool that fails is not an error here: some of them print it and end with 0.
        """
        name = main if "." in main else f"org.apache.kafka.tools.{main}"
        done = subprocess.run(
            [
                *(str(self._java), *SMALL_HEAP),
                f"-Dlog4j2.configurationFile={self._quiet}",
                *("-cp", self._jars, name, *arguments),
            ],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        return done.stdout + done.stderr
