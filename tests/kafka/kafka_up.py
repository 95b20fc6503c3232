"""A running `logberg kafka up`, and what tests ask of it."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.process.leftovers import nothing_is_left

START_S = 240.0
STOP_S = 90.0
_COMMAND_S = 120.0


class Up:
    """The process, and all that it has written."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._said = folder.with_suffix(".txt")
        with self._said.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "logberg", "kafka", "up", "--data", str(folder), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    def says(self, pattern: str, limit_s: float) -> None:
        """Wait until it says something."""
        until = time.monotonic() + limit_s
        while not re.search(pattern, self.said):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.2)

    def ready(self) -> None:
        """Wait until all are ready."""
        self.says(r"ready: \d controllers, \d brokers of Kafka", START_S)

    def stops(self) -> None:
        """Press Ctrl-C; all must end in order."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(STOP_S) == 0, self.said
        assert "stopped cleanly" in self.said, self.said
        nothing_is_left(self.folder)

    @property
    def part(self) -> dict[str, Any]:
        """What cluster.json says of Kafka."""
        found: dict[str, Any] = json.loads((self.folder / "cluster.json").read_bytes())["kafka"]
        return found

    def tool(self, *arguments: str, given: str | None = None) -> str:
        """Run one of Kafka's tools, and return what it printed."""
        return command("kafka", "tool", "--data", str(self.folder), *arguments, given=given)


@contextmanager
def kafka_up(folder: Path, *arguments: str) -> Iterator[Up]:
    """Run it for the time of a `with` block."""
    up = Up(folder, *arguments)
    try:
        yield up
    finally:
        up.process.kill()
        up.process.wait()


def command(*arguments: str, given: str | None = None) -> str:
    """Run `logberg`, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "logberg", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout


def produce_100(up: Up, topic: str) -> None:
    """Send the numbers from 0 to 99."""
    up.tool("kafka-console-producer", "--topic", topic, given="".join(f"{n}\n" for n in range(100)))


def consume_100(up: Up, topic: str) -> list[int]:
    """Return a hundred messages from the topic's beginning, sorted."""
    printed = up.tool(
        *("kafka-console-consumer", "--topic", topic, "--from-beginning"),
        *("--max-messages", "100", "--timeout-ms", "60000"),
    )
    return sorted(map(int, printed.split()))
