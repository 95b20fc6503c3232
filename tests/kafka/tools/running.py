"""Runs one of Kafka's tools in a Java of its own, and keeps what does not change between runs."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from logberg.kafka.jars import TOOLS, class_path, kafka_jars
from logberg.kafka.tools import CLASSES
from tests.kafka.tools.commands import MOVES, ToolCommand

_HEAP: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOOL_S: Final = 90
_QUIET: Final = '<Configuration status="OFF"><Loggers><Root level="off"/></Loggers></Configuration>'
_CHANGING: Final = (
    (re.compile(r"\b[A-Za-z0-9_-]{21}[AQgw]\b(?!\.)"), "…uuid…"),
    (re.compile(r"\b\d{13}\b"), "…time…"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:…"),
    (re.compile(r"(127\.0\.0\.1\s+)\d+"), r"\1…"),
    (re.compile(r"((?:Epoch|LeaderId|HighWatermark|Lag|LagTimeMs):? +)\d+"), r"\1…"),
    (re.compile(r"(…uuid…\s+)\d+"), r"\1…"),
    (re.compile(r"/\S+/(?=[\w.-]+\b)"), "…/"),
)
"""What differs from run to run, and what stands for it."""


class Printed(NamedTuple):
    """What a command printed, without what changes, and whether it said that it worked."""

    text: str
    worked: bool


class ToolRunner:
    """Kafka's tools of one version, and the cluster that they ask."""

    def __init__(
        self,
        server: str,
        controller: str,
        folder: Path,
        version: str,
        config: Path | None = None,
    ) -> None:
        """`server` and `controller` are addresses. `folder` gets the files of the commands.

        `config`: the properties of the client, for --command-config.
        """
        self._config = () if config is None else ("--command-config", str(config))
        self._addresses = {False: server, True: controller}
        self._folder = folder
        self._jars = class_path(kafka_jars(version, wanted=TOOLS))
        (folder / "moves.json").write_text(MOVES)
        (folder / "log4j2.xml").write_text(_QUIET)

    def run(self, command: ToolCommand) -> Printed:
        """Run a command until it prints what it should, and return what it printed last."""
        for _ in range(command.tries):
            printed = self._once(command)
            if command.until in printed.text:
                break
            time.sleep(1.0)
        return printed

    def _once(self, command: ToolCommand) -> Printed:
        tool, *arguments = command.words.split()
        where = "--bootstrap-controller" if command.controller else "--bootstrap-server"
        address = (where, self._addresses[command.controller], *self._config)
        split = address_at(tool, arguments)
        done = subprocess.run(
            [
                "java",
                *_HEAP,
                f"-Dlog4j2.configurationFile={self._folder / 'log4j2.xml'}",
                "-cp",
                self._jars,
                CLASSES[tool],
                *arguments[:split],
                *address,
                *arguments[split:],
            ],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=_TOOL_S,
            check=False,
        )
        return Printed(lasting(done.stdout + done.stderr), done.returncode == 0)


def address_at(tool: str, arguments: Sequence[str]) -> int:
    """Return before which argument the address stands: behind a subcommand, if there is one."""
    first = tool in ("kafka-metadata-quorum", "kafka-features")
    return 0 if first or not arguments or arguments[0].startswith("-") else 1


def lasting(text: str) -> str:
    """Return the lines without stack traces, and without what changes from run to run."""
    lines = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not re.match(r"\s+at |Caused by: |\s+\.\.\. \d+ more", line)
    ]
    found = "\n".join(lines)
    for pattern, stand_in in _CHANGING:
        found = pattern.sub(stand_in, found)
    return found
