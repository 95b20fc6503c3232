"""Cuts one server of a store off from the others; clients still reach it.

Rule: the servers tell each other ports of proxies, and listen on their own. So whoever configures
servers asks `before` for each port that they offer each other.
"""

import json
import subprocess
import sys
from typing import Self

from tests.conformance.ports import free_port


class PeerGate:
    """The proxies between the servers of one store."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int, int]] = []
        self._process: subprocess.Popen[str] | None = None
        self._cut = False

    def before(self, port: int, number: int) -> int:
        """Return the port of a proxy before a port of the server of this number, from 0."""
        place = free_port()
        self._places.append((place, port, number))
        return place

    def __enter__(self) -> Self:
        """Start the proxies."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.coordination.servers.peer_proxy", self._told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        assert self._process is not None
        self._process.communicate(timeout=10)

    def cut(self, number: int, pid: int) -> None:
        """Cut one server off from the others; `pid` is its process."""
        self._cut = True
        self._say(f"cut {number} {pid}")

    def mend(self) -> None:
        """Join it again; harmless when none is cut off."""
        if self._cut:
            self._cut = False
            self._say("mend")

    @property
    def _told(self) -> str:
        return json.dumps(self._places)

    def _say(self, command: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if answer != "done\n":
            raise RuntimeError(f"the proxies between the servers ended: {answer!r}")
