"""A bash that a page's commands run in, one after another, each within a time limit."""

import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 60.0


class Shell:
    """One shell in a folder of its own, with what it left running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "160",
            "PYTHONUNBUFFERED": "1",
        }
        self._environment.pop("LOGBERG_CONTROLLERS", None)
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.background: list[subprocess.Popen[bytes]] = []
        self._number = 0

    def run(self, command: str, limit_s: float = LIMIT_S) -> tuple[int, str]:
        """Run a command to its end. Returns its exit code and what it printed."""
        self._number += 1
        mark = f"--- end of {self._number} ---"
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{command.rstrip()}\nprintf '\\n%s %s\\n' '{mark}' $?\n".encode())
        self._bash.stdin.flush()
        printed = self._read_until(f"\n{mark} ".encode(), limit_s, command)
        text, _, rest = printed.decode().rpartition(f"\n{mark} ")
        return int(rest), text

    def _read_until(self, mark: bytes, limit_s: float, command: str) -> bytes:
        assert self._bash.stdout is not None
        until = time.monotonic() + limit_s
        printed = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while not (mark in printed and printed.endswith(b"\n")):
                left = until - time.monotonic()
                assert left > 0, f"not done after {limit_s:.0f} s: {command}\n{printed.decode()}"
                if selector.select(left):
                    piece = os.read(self._bash.stdout.fileno(), 65536)
                    assert piece, f"the shell ended at: {command}\n{printed.decode()}"
                    printed += piece
        return printed

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        """Start a command and leave it running; its output goes to a file."""
        number = len(self.background) + 1
        with (self.folder / f"background-{number}.txt").open("wb") as output:
            process = subprocess.Popen(
                shlex.split(command, comments=True),
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.background.append(process)
        return process

    def said(self) -> str:
        """What the processes in the background printed."""
        files = sorted(self.folder.glob("background-*.txt"))
        return "\n".join(f"== {file.name}\n{file.read_text()[-4000:]}" for file in files)

    def stop(self) -> list[int]:
        """End everything in order, the last started first. Returns the exit codes."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.close()
        try:
            self._bash.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()
        self._bash.stdout.close()
        return [_ended(process) for process in reversed(self.background)]


def _ended(process: "subprocess.Popen[bytes]") -> int:
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return -signal.SIGKILL
