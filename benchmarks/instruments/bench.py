"""The settings that every measurement gets: a folder, durations, counts, verbosity."""

import itertools
import shutil
import sys
from pathlib import Path

from benchmarks.instruments.floors import Floors, measure
from logberg.local.ports import port_is_free

_PORTS = itertools.count(24_000)
_PORT_LAST = 32_000


class Bench:
    """The settings of one run."""

    def __init__(self, folder: Path, *, quick: bool, verbose: bool) -> None:
        self.folder = folder
        self.quick = quick
        self._verbose = verbose
        self.rounds = 1 if quick else 3

    def seconds(self, usual: float) -> float:
        """How long a round takes."""
        return usual / 4 if self.quick else usual

    def count(self, usual: int, quick: int) -> int:
        """How many, of what is counted rather than timed."""
        return quick if self.quick else usual

    def say(self, line: str) -> None:
        """Print a detail, if details are asked for."""
        if self._verbose:
            print(f"    {line}", file=sys.stderr, flush=True)

    def floors(self) -> Floors:
        """Measure the machine, now."""
        return measure(self.folder)

    def fresh_folder(self, name: str) -> Path:
        """An empty folder on the disk that is measured."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def free_ports(count: int) -> list[int]:
    """Ports below the range that the system hands out to clients."""
    found = []
    for port in _PORTS:
        if port > _PORT_LAST:
            raise RuntimeError("no free ports below 32000")
        if port_is_free(port):
            found.append(port)
        if len(found) == count:
            break
    return found
