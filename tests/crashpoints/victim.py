"""A controller that kills itself at a chosen change of its files.

    python -m tests.crashpoints.victim FOLDER ORDERS controller --config FILE

It runs `logberg` with the rest of the command line and watches the changes in FOLDER. Before each
change it reads the file ORDERS and removes it. `4:half` means: die at the fourth change from now,
in the middle of its write. At an orderly end it prints the number of changes.
"""

import atexit
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from tests.crashpoints.steps import Step, Steps, shares, tear


class Victim:
    """Counts, and obeys."""

    def __init__(self, folder: Path, orders: Path) -> None:
        self._orders = orders
        self._folder = folder
        self._left: int | None = None
        self._share = "before"
        self.counts: Counter[str] = Counter()

    def on_step(self, step: Step) -> None:
        """Die here, if this is the place."""
        if self._left is None and self._orders.exists():
            text = self._orders.read_text()
            self._orders.unlink()
            number, _, self._share = text.partition(":")
            self._left = int(number)
        if self._left == 0:
            if self._share in shares(step):
                tear(step, self._folder, self._share)
            os.write(1, f"dies at {step.kind} {step.path}:{self._share}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        if self._left is not None:
            self._left -= 1
        self.counts[step.kind] += 1

    def tell(self) -> None:
        """Print the counts."""
        os.write(1, f"changes {json.dumps(self.counts)}\n".encode())


def main() -> None:
    folder, orders, *arguments = sys.argv[1:]
    victim = Victim(Path(folder), Path(orders))
    Steps(Path(folder), victim.on_step).install()
    atexit.register(victim.tell)
    sys.argv = ["logberg", *arguments]
    from logberg.cli.main import main as logberg  # noqa: PLC0415 - after the functions are replaced

    logberg()


if __name__ == "__main__":
    main()
