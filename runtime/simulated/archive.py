"""A simulated archive that all nodes of a cluster share, with its faults.

Rule: the content outlives every process. Work takes time, is done in the order of a node's calls,
and is lost with its process. Faults are switched by whoever runs the simulation: the archive is
gone, refuses to be written, is slow, or never answers; it returns flipped bits, or less than it
holds; some of its files are not found; or it keeps other bytes than were written. A file appears
when it is closed.
"""

import errno
import random
import zlib
from collections.abc import Callable
from typing import Final, TypeVar

from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

T = TypeVar("T")
_FAST_US: Final = (200, 3_000)
_SLOW_US: Final = (100_000, 2_000_000)


class SimulatedArchive:
    """The place, and what is wrong with it now."""

    def __init__(self, world: World, location: str = "simulated-archive") -> None:
        self.location = location
        self.files: dict[str, bytes] = {}
        self.dice = world.random("archive")
        self.gone = False
        """Nothing can be read or written."""
        self.refuses = False
        """Nothing can be written."""
        self.slow = False
        self.silent = False
        """Work waits until it is healed."""
        self.flips = False
        """Half of what is read has a wrong bit."""
        self.shortens = False
        """Half of what is read lacks a piece in its middle."""
        self.forgets = False
        """Half of the files are not found."""
        self.mangles = False
        """What is written now is kept with a wrong bit, or without a piece of it."""
        self.mangled: dict[str, bytes] = {}
        """What should be in the files that were mangled, until they are repaired."""
        self._waiting: list[Callable[[], None]] = []
        self.reads = self.writes = 0
        self.on_written: Callable[[str], None] = lambda _name: None
        """Called when a file has appeared."""

    def heal(self) -> None:
        """End all faults."""
        self.gone = self.refuses = self.slow = self.silent = False
        self.flips = self.shortens = self.forgets = self.mangles = False
        waiting, self._waiting = self._waiting, []
        for begin in waiting:
            begin()

    def hold(self, begin: Callable[[], None]) -> None:
        """Begin work when the archive answers again."""
        self._waiting.append(begin)

    def of(self, process: SimulatedProcess) -> "ArchiveOfProcess":
        """Return the archive as one process reaches it."""
        return ArchiveOfProcess(self, process)

    # -- what work does, as `ledger.archive_place.ArchivePlace` -----------------------------

    def names(self) -> list[str]:
        self._must_be_there()
        return sorted(name for name in self.files if not self._is_hidden(name))

    def read(self, name: str, position: int, length: int) -> bytes:
        self._must_be_there()
        self.reads += 1
        if name not in self.files or self._is_hidden(name):
            raise FileNotFoundError(errno.ENOENT, "no such file (simulated)", name)
        data = self.files[name][position : position + length]
        if self.flips and data and self.dice.random() < 0.5:
            data = flipped(data, self.dice)
        if self.shortens and data and self.dice.random() < 0.5:
            data = shortened(data, self.dice)
        return data

    def create(self, name: str) -> "SimulatedWriter":
        self.must_take_writes()
        return SimulatedWriter(self, name)

    def keep(self, name: str, content: bytes) -> None:
        """Let a file appear; as it is, or mangled."""
        self.files[name] = content
        self.mangled.pop(name, None)
        if self.mangles and content:
            mangle = self.dice.choice((flipped, shortened))
            self.files[name] = mangle(content, self.dice)
            self.mangled[name] = content
        self.writes += 1
        self.on_written(name)

    def repair(self, name: str) -> None:
        """Put what should be there in the place of a file that was mangled."""
        self.files[name] = self.mangled.pop(name)

    def _is_hidden(self, name: str) -> bool:
        return self.forgets and zlib.crc32(name.encode()) % 2 == 0

    def _must_be_there(self) -> None:
        if self.gone:
            raise OSError(errno.EHOSTUNREACH, "the archive is gone (simulated)")

    def must_take_writes(self) -> None:
        """Raise what a write raises now, if anything."""
        self._must_be_there()
        if self.refuses:
            raise OSError(errno.EACCES, "the archive takes no writes (simulated)")


def flipped(data: bytes, dice: random.Random) -> bytes:
    """Return the bytes with one bit wrong."""
    changed = bytearray(data)
    changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def shortened(data: bytes, dice: random.Random) -> bytes:
    """Return the bytes without a piece of them."""
    start = dice.randrange(len(data))
    return data[:start] + data[start + dice.randint(1, len(data) - start) :]


class SimulatedWriter:
    """A file that is being written."""

    def __init__(self, archive: SimulatedArchive, name: str) -> None:
        self._archive = archive
        self._name = name
        self._content = bytearray()

    def write(self, data: bytes) -> None:
        self._archive.must_take_writes()
        self._content += data

    def close(self) -> None:
        self._archive.must_take_writes()
        self._archive.keep(self._name, bytes(self._content))

    def give_up(self) -> None:
        self._content.clear()


class ArchiveOfProcess:
    """`ledger.archive_place.Archive` for one process."""

    def __init__(self, archive: SimulatedArchive, process: SimulatedProcess) -> None:
        self._archive = archive
        self._process = process
        self._free_at_us = 0

    @property
    def location(self) -> str:
        return self._archive.location

    def run(
        self,
        work: Callable[[SimulatedArchive], T],
        on_done: Callable[[T | None, OSError | None], None],
    ) -> None:
        archive = self._archive
        if not self._process.alive:
            return
        if archive.silent:
            archive.hold(lambda: self.run(work, on_done))
            return
        takes_us = archive.dice.randrange(*(_SLOW_US if archive.slow else _FAST_US))
        now_us = self._process.world.now_us
        self._free_at_us = max(self._free_at_us, now_us) + takes_us

        def done() -> None:
            result: T | None = None
            failure: OSError | None = None
            try:
                result = work(archive)
            except OSError as error:
                failure = error
            on_done(result, failure)

        self._process.schedule(self._free_at_us - now_us, done, "archive")
