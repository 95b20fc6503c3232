"""Runs a real process on a folder whose disk fails on command; see faulty_disk.c.

It needs a C compiler and no privileges: a library that is preloaded into the process answers in
place of the kernel. Paths are absolute, since processes change their working folder.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("faulty_disk.c")


class FaultyDisk:
    """Faults for one folder of processes that are started with `environment`."""

    def __init__(self, place: Path, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler: what is preloaded into a process can't be made")
        library = place / "faulty_disk.so"
        make = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(make, check=True, capture_output=True)
        self._control = place / "control"
        self._control.mkdir()
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAULTY_FOLDER": str(folder),
            "FAULTY_CONTROL": str(self._control),
        }

    def fail(self, mode: str) -> None:
        """`eio`, `erofs` or `slow MS` from now on, or nothing."""
        beside = self._control / "beside"
        beside.write_text(mode)
        beside.rename(self._control / "mode")

    def syncs_asked_for(self) -> list[str]:
        """What was to be synced since the first that failed, that one included."""
        asked = self._control / "asked"
        return asked.read_text().splitlines() if asked.exists() else []
