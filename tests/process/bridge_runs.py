"""A bridge that runs as a process of its own, and what it says."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from logberg.local.child import Child

PATIENCE_S: Final = 40.0


class BridgeRun:
    """One run of `logberg import zookeeper URL --follow` or `--take-over`."""

    def __init__(self, folder: Path, output: Path, url: str, *options: str) -> None:
        arguments = ["import", "zookeeper", url, *options, "--data", str(folder)]
        self.child = Child("bridge", arguments, output)
        self.child.start()

    @property
    def said(self) -> str:
        return self.child.output.read_text()

    def wait_for(self, words: str, times: int = 1) -> None:
        """Wait until it has said something so often."""
        until = time.monotonic() + PATIENCE_S
        while self.said.count(words) < times:
            assert self.child.running, f"the bridge ended: {self.said}"
            assert time.monotonic() < until, f"{words!r} isn't said: {self.said}"
            time.sleep(0.05)

    def wait_for_end(self) -> str:
        """Wait until it ends by itself, and return what it said."""
        until = time.monotonic() + PATIENCE_S
        while self.child.running:
            assert time.monotonic() < until, f"the bridge goes on: {self.said}"
            time.sleep(0.05)
        return self.said

    def interrupt(self) -> str:
        """Send Ctrl-C, and return what it said by its end."""
        self.child.signal(signal.SIGINT)
        return self.wait_for_end()


@contextmanager
def bridge(cluster: Any, url: str, *options: str) -> Iterator[BridgeRun]:
    """Run a bridge to a cluster; nothing of it is left running."""
    output = cluster.folder / f"bridge-{time.monotonic_ns()}.log"
    run = BridgeRun(cluster.folder, output, url, *options)
    try:
        yield run
    finally:
        run.child.kill()
