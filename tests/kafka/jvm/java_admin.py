"""A Java Admin client that stays connected and creates a topic when it is told to (OneByOne.java).

    with java_admin(programs, bootstrap) as admin:
        leader.kill()
        took_ms = admin.create("orders")

Rule: nothing of Java's start lies between a test's last step and the client's request.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from logberg.kafka.kafka_error import KafkaError
from tests.kafka.jvm.programs import JavaPrograms

_START_S: Final = 90.0
_CREATE_S: Final = 150.0


class JavaAdmin:
    """The connected client."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._read = b""

    def connected(self) -> None:
        """Wait until it has asked the cluster once. Raises KafkaError."""
        self._says("connected", _START_S)

    def create(self, topic: str) -> int:
        """Create a topic; return after how many ms that was acknowledged. Raises KafkaError."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{topic}\n".encode())
        self._process.stdin.flush()
        return int(self._says(f"created {topic} ", _CREATE_S))

    def _says(self, start: str, limit_s: float) -> str:
        """Return the rest of the next line, which must begin so. Raises KafkaError."""
        line = self._line(limit_s)
        if not line.startswith(start):
            raise KafkaError(f"the Java client said {line!r} instead of {start!r}")
        return line.removeprefix(start)

    def _line(self, limit_s: float) -> str:
        assert self._process.stdout is not None
        end = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise KafkaError(f"the Java client said nothing for {limit_s:.0f} s")
                more = os.read(self._process.stdout.fileno(), 65_536)
                if not more:
                    raise KafkaError(f"the Java client ended: {self._process.wait()}")
                self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


@contextmanager
def java_admin(programs: JavaPrograms, bootstrap: str, properties: str = "") -> Iterator[JavaAdmin]:
    """Run the client for the time of a `with` block. `properties`: a file of its settings."""
    more = [properties] if properties else []
    process = subprocess.Popen(
        programs.line("OneByOne", bootstrap, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        admin = JavaAdmin(process)
        admin.connected()
        yield admin
    finally:
        process.kill()
        process.communicate()
