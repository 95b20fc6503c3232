"""Finds processes that still use a folder. After a test there must be none."""

import os
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 15.0


def processes_of(folder: Path, *words: str) -> dict[int, str]:
    """Command lines, by process id, that name the folder and all `words`."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            ours = "logberg" in line or "quorate" in line  # the second is release 0.1's
            if ours and all(word in line for word in (str(folder), *words)):
                found[int(entry.name)] = line
    return found


def nothing_is_left(folder: Path) -> None:
    """Check that every process of the folder has ended, or does within moments."""
    until = time.monotonic() + PATIENCE_S
    while left := processes_of(folder):
        assert time.monotonic() < until, left
        time.sleep(0.05)
