"""A wall clock for child processes that a tester can step; see stepped_clock.c.

It needs a C compiler and no privileges: a library that is preloaded into a process answers in place
of the C library. Python and Java ask the C library for the time. Go asks the kernel itself, so its
programs can't be fooled so.
"""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

from benchmarks.peers.tools import NoToolError
from logberg.local.child import Child

SOURCE = Path(__file__).with_name("stepped_clock.c")
GO_READS_THE_KERNELS_CLOCK = "a program in Go reads the kernel's clock past the C library"
_NS = 1_000_000_000


class WallClock:
    """What the processes under it take for the time of day."""

    def __init__(self, folder: Path) -> None:
        """`folder` exists. Raises NoToolError without a C compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise NoToolError("a stepped clock needs a C compiler (Debian: apt install gcc)")
        library = folder / "stepped_clock.so"
        make = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(make, check=True, capture_output=True)
        file = folder / "stepped_clock"
        file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(file)}
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 8)

    def govern(self, child: Child) -> None:
        """Let a child that isn't started yet read this clock."""
        words = [f"{name}={value}" for name, value in self.environment.items()]
        child._arguments = ["env", *words, *child._arguments]

    def step(self, seconds: float) -> None:
        """Set the clock to the true time and so much more; it counts at once."""
        self._shared[:] = struct.pack("=q", round(seconds * _NS))
