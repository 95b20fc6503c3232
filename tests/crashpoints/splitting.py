"""Forks the process at each step of a run; the node is killed in the copy.

Rule: a copy is the whole world at this step, by fork, with a copy of the folder. So what comes
before a point runs only once, and a copy behaves like a run of its own. A copy ends with a report
on a pipe. A copy that ends without a report is a failure.
"""

import json
import os
import select
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

PATIENCE_S = 120
"""A copy that takes longer is ended by the kernel, and counts as a failure."""


class _Copy(NamedTuple):
    label: str
    pid: int
    pipe: int


class Splitting:
    """The copies of this process, so many at a time."""

    def __init__(self, jobs: int, on_report: Callable[[str, dict[str, Any]], None]) -> None:
        """`on_report(label, report)`; a report without "failure" says that all held."""
        self.jobs = jobs
        """So many at a time."""
        self._on_report = on_report
        self._copies: list[_Copy] = []
        self._to_parent: int | None = None

    @property
    def is_copy(self) -> bool:
        """Whether this process is a copy."""
        return self._to_parent is not None

    def split(self, label: str) -> bool:
        """Split; True in the copy."""
        while len(self._copies) >= self.jobs:
            self._collect()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            signal.alarm(PATIENCE_S)
            self._copies = []
            self._to_parent = write
            return True
        os.close(write)
        self._copies.append(_Copy(label, pid, read))
        return False

    def finish(self) -> None:
        """Wait for all copies."""
        while self._copies:
            self._collect()

    def report(self, found: dict[str, Any]) -> None:
        """End this copy with what it found. Does not return."""
        assert self._to_parent is not None, "only a copy reports"
        with os.fdopen(self._to_parent, "w") as pipe:
            pipe.write(json.dumps(found))
        os._exit(0)

    def _collect(self) -> None:
        ready, _, _ = select.select([copy.pipe for copy in self._copies], [], [])
        for copy in [copy for copy in self._copies if copy.pipe in ready]:
            self._copies.remove(copy)
            with os.fdopen(copy.pipe) as pipe:
                said = pipe.read()
            _, status = os.waitpid(copy.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            found = json.loads(said) if said else {"failure": f"the copy ended with {code}"}
            self._on_report(copy.label, found)
