"""Runs one of Kafka's test classes in a Java of its own.

Rule: the two sides differ in one thing, our classes first on the class path. A run has a time
limit, and nothing that it started lives on behind it.
"""

import os
import signal
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from logberg.kafka.jars import class_path, kafka_jars
from logberg.kafka.java import java_for_kafka
from tests.kafka.kafkas_tests.compiling import compiled
from tests.kafka.kafkas_tests.jar_sets import TESTS, VERSION, in_order
from tests.kafka.kafkas_tests.reports import CaseReport, read_reports

_HEAP: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_MAIN: Final = "org.junit.platform.console.ConsoleLauncher"
METHOD_S: Final = 240
"""JUnit interrupts a test that takes longer."""
CLASS_S: Final = 1_800
_LOG4J2: Final = """\
<Configuration status="ERROR">
  <Appenders>
    <Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="ERROR"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""


class Side(StrEnum):
    """On whose controllers a test runs."""

    LOGBERG = "logberg"
    KRAFT = "kraft"


class ClassRun(NamedTuple):
    """What a test class did on one side."""

    tests: tuple[CaseReport, ...]
    ended: bool
    """False: the time limit ended it, or Java did, and JUnit reported nothing."""
    seconds: float
    controllers: int
    """So many processes of our controllers it started."""


def run_class(
    name: str, side: Side, folder: Path, limit_s: float = CLASS_S, method: str = ""
) -> ClassRun:
    """Run a test class, or one of its methods. Its output stays in `folder`. Raises KafkaError."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    (folder / "log4j2.xml").write_text(_LOG4J2)
    started = time.monotonic()
    with (folder / "output.log").open("wb") as output:
        java = subprocess.Popen(
            _command(name, side, folder, method),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            start_new_session=True,
        )
        try:
            java.wait(limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end_group(java)
    tests = tuple(read_reports(folder / "reports"))
    controllers = len(list(folder.glob("controller-*.log")))
    return ClassRun(tests, bool(tests), time.monotonic() - started, controllers)


def _end_group(java: "subprocess.Popen[bytes]") -> None:
    """End Java, and the controllers that it started and that are still there."""
    try:
        os.killpg(java.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        java.wait()


def _command(name: str, side: Side, folder: Path, method: str) -> list[str]:
    jars = in_order(kafka_jars(VERSION, wanted=TESTS))
    first = [compiled(jars, VERSION)] if side is Side.LOGBERG else []
    controller = f"{sys.executable}\n-m\nlogberg\ncontroller"
    chosen = f"--select-method={name}#{method}" if method else f"--select-class={name}"
    return [
        str(java_for_kafka().program),
        *_HEAP,
        "-XX:+EnableDynamicAgentLoading",
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}",
        f"-Dlogberg.command={controller}",
        f"-Dlogberg.output={folder}",
        "-cp",
        class_path([*first, *jars]),
        _MAIN,
        "execute",
        chosen,
        "--include-classname=.*",
        # Kafka's kit is an extension of JUnit, which its jar registers.
        "--config=junit.jupiter.extensions.autodetection.enabled=true",
        f"--reports-dir={folder / 'reports'}",
        "--details=testfeed",
        "--disable-banner",
        "--disable-ansi-colors",
        f"--config=junit.jupiter.execution.timeout.testable.method.default={METHOD_S} s",
    ]
