"""A small file system in memory, for tests of disks without room; only root may mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEBIBYTES = 24


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Make a folder that is a file system of its own; skip the test where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, leave_kib: int) -> Path:
    """Take a disk's room away, but for so much; return the file that does."""
    figures = os.statvfs(folder)
    room = figures.f_bavail * figures.f_frsize - leave_kib * 1024
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(max(0, room)))
    return ballast
