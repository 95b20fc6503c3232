"""The notes of a contending client, read from its output while it writes them."""

import json
from typing import Any

from logberg.local.child import Child
from tests.process.contending_client import NOTE


class NotedLines:
    """All notes of one client so far."""

    def __init__(self, client: Child) -> None:
        self._client = client
        self._read_to = 0
        self._rest = b""
        self.all: list[dict[str, Any]] = []
        self.grants = 0
        self.holds: set[str] = set()
        """The kinds of what it holds, as far as it said."""

    def read(self) -> None:
        """Take what was written since."""
        if not self._client.output.exists():
            return
        with self._client.output.open("rb") as output:
            output.seek(self._read_to)
            found = output.read()
        self._read_to += len(found)
        *lines, self._rest = (self._rest + found).split(b"\n")
        for line in lines:
            # A killed client's last line has no end, and stands before the next life's first one.
            _, sign, text = line.rpartition(NOTE.encode())
            if sign:
                self._take(json.loads(text))

    def _take(self, note: dict[str, Any]) -> None:
        self.all.append(note)
        if note["what"] == "begin":
            self.holds.clear()
        elif note["what"] == "granted":
            self.grants += 1
            self.holds.add(note["kind"])
        elif note["what"] == "over":
            self.holds.discard(note["kind"])
