"""A child process that ends when its parent does.

Rule: the children always end with the process that started them: in order on Ctrl-C, and by the
kernel (`PR_SET_PDEATHSIG`) if the parent is killed. Children have a session of
their own, so that a terminal's Ctrl-C reaches the parent only, which stops them in order.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from runtime.parent_death import die_with


class Child:
    """One process of the local cluster; its output goes to a file."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        output: Path,
        program: Sequence[str] = (sys.executable, "-m", "logberg"),
    ) -> None:
        self.name = name
        self.output = output
        self._arguments = [*program, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; harmless while it runs."""
        if self.running:
            return
        self.output.parent.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        with self.output.open("ab") as sink:
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=lambda: die_with(parent),  # noqa: PLW1509 - one thread; the kernel's own guard
            )

    @property
    def running(self) -> bool:
        """Whether it runs now (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id. Raises RuntimeError before a start."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code once it has ended; negative for a signal."""
        return None if self._process is None else self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; harmless when it has ended."""
        if self.running:
            os.kill(self.pid, number)

    def wait(self, limit_s: float) -> bool:
        """Wait for its end; False when it still runs after `limit_s`."""
        if self._process is None:
            return True
        try:
            self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End it by force and reap it."""
        self.signal(signal.SIGKILL)
        self.wait(5.0)

    def obituary(self) -> str:
        """Describe how the process ended, with its last lines of output."""
        code = self.exit_code
        assert code is not None, f"{self.name} lives"
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        # A killed process had no time to log its end; its last lines are about something else.
        said = "" if code < 0 else f" Its last lines ({self.output}):\n{self.last_words()}\n"
        return f"{self.name} (process {self.pid}) ended with {how}.{said}"

    def last_words(self, lines: int = 5) -> str:
        """The end of its output, for a message that says why it ended."""
        try:
            text = self.output.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def stop_all(children: Sequence[Child], limit_s: float) -> list[str]:
    """Stop all; kill those that still run after `limit_s`. Returns the names of the killed."""
    for child in children:
        # A paused process handles SIGTERM only after it is resumed.
        child.signal(signal.SIGCONT)
        child.signal(signal.SIGTERM)
    until = time.monotonic() + limit_s
    forced = []
    for child in children:
        if not child.wait(max(0.0, until - time.monotonic())):
            forced.append(child.name)
            child.kill()
    return forced
