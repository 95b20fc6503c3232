"""One Kafka server as a child process: formatted, started, watched, stopped by its pid.

Rule: what runs is Kafka's own `kafka.Kafka` on the jars of one version, with a small heap. The
server ends with the process that started it, as every process of `logberg up` does. A broker is
RUNNING when its own log says that the controllers unfenced it, so nothing is asked of a cluster
that may be down.

    FOLDER/server.properties    written anew at every start
    FOLDER/log4j2.xml
    FOLDER/data                 Kafka's log.dirs
    FOLDER/output.log           what the server logs
"""

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from audit.spark.java import Java
from logberg.kafka.jars import class_path
from logberg.kafka.kafka_error import KafkaError
from logberg.kafka.node_files import write_files
from logberg.local.child import Child

_FORMAT_S: Final = 120
_POLL_S: Final = 0.1
SMALL_HEAP: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_UNFENCED: Final = re.compile(rb"from (?:STARTING|RECOVERY) to RUNNING")
_STARTED: Final = re.compile(rb"Kafka Server started")
_FATAL: Final = re.compile(rb"(?:FATAL|Exiting Kafka|Encountered fatal fault)[^\n]*")


class KafkaProcess:
    """One Kafka server, a broker or a stock controller, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str],
        jars: Sequence[Path],
        java: Java,
        options: Sequence[str] = SMALL_HEAP,
        output: Path | None = None,
    ) -> None:
        """`properties` are those of node_files.py; `options` go to Java.

        `output` is where the server logs, if not in its folder.
        """
        self.node_id = int(properties["node.id"])
        self.role = properties["process.roles"]
        self.name = f"kafka-{self.role}-{self.node_id}"
        self.folder = folder
        self._properties = dict(properties)
        self._from = 0
        self._java: list[str] = [str(java.program), *options, "-cp", class_path(list(jars))]
        self._log4j = f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}"
        self.child = Child(
            self.name,
            [self._log4j, "kafka.Kafka", str(folder / "server.properties")],
            output or folder / "output.log",
            program=self._java,
        )

    @property
    def formatted(self) -> bool:
        """Whether the folder already holds this server's data."""
        return any(
            Path(log_dir, "meta.properties").exists()
            for log_dir in self._properties["log.dirs"].split(",")
        )

    def format(self, cluster_id: str, *how: str) -> None:
        """Let Kafka's StorageTool format the data folder; harmless if it is. Raises KafkaError.

        `how` goes to StorageTool. By default the server gets its quorum from its settings.
        """
        write_files(self.folder, self._properties)
        if self.formatted:
            return
        command = [*self._java, self._log4j, "kafka.tools.StorageTool", "format"]
        # An id that begins with a dash, behind `-t`, would be taken for an option.
        command += [f"--cluster-id={cluster_id}", "-c", str(self.folder / "server.properties")]
        command += how or ("--no-initial-controllers",)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_FORMAT_S
            )
        except subprocess.TimeoutExpired:
            raise KafkaError(f"{self.name} was not formatted within {_FORMAT_S} s.") from None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise KafkaError(f"{self.name} can't be formatted: {said[-1] if said else 'no reason'}")

    def start(self) -> None:
        """Start it; harmless while it runs."""
        if self.child.running:
            return
        write_files(self.folder, self._properties)
        output = self.child.output
        self._from = output.stat().st_size if output.exists() else 0
        self.child.start()

    def output(self) -> bytes:
        """Return what it logged since its last start."""
        try:
            with self.child.output.open("rb") as lines:
                lines.seek(self._from)
                return lines.read()
        except FileNotFoundError:
            return b""

    @property
    def is_up(self) -> bool:
        """Whether its log says that it is up: a broker RUNNING, a controller started."""
        return bool((_UNFENCED if self.role == "broker" else _STARTED).search(self.output()))

    def wait_running(self, limit_s: float = 90.0) -> None:
        """Wait until it is up. Raises KafkaError if it ends, or after `limit_s`."""
        until = time.monotonic() + limit_s
        while not self.is_up:
            if self.child.exit_code is not None:
                raise KafkaError(self.obituary())
            if time.monotonic() > until:
                raise KafkaError(
                    f"{self.name} is not RUNNING after {limit_s:.0f} s. Its last lines "
                    f"({self.child.output}):\n{self.child.last_words()}"
                )
            time.sleep(_POLL_S)

    def stop(self, limit_s: float = 30.0) -> bool:
        """Stop it in order: SIGTERM, and SIGKILL after `limit_s`. False if it had to be killed."""
        self.child.signal(signal.SIGCONT)
        self.child.signal(signal.SIGTERM)
        if self.child.wait(limit_s):
            return True
        self.child.kill()
        return False

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.child.kill()

    def obituary(self) -> str:
        """Say how it ended, with its last lines and the one that names a fatal fault."""
        found = _FATAL.search(self.output())
        fault = f"\n{found[0].decode(errors='replace')}" if found else ""
        return f"{self.child.obituary().rstrip()}{fault}"


def stop_servers(servers: Sequence[KafkaProcess], limit_s: float = 30.0) -> list[str]:
    """Stop all at once; kill those that still run after `limit_s`. Returns the killed ones."""
    for server in servers:
        server.child.signal(signal.SIGCONT)
        server.child.signal(signal.SIGTERM)
    until = time.monotonic() + limit_s
    forced = []
    for server in servers:
        if not server.child.wait(max(0.0, until - time.monotonic())):
            forced.append(server.name)
            server.kill()
    return forced
