"""The disks that one suite examines.

To have another disk examined, write a kit and add it to `DISK_KITS`; `test_disk.py` stays as
it is. A kit stands for one machine: a folder, and processes on it that come and go.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from runtime.asyncio_clock import AsyncioClock
from runtime.disk.interface import Disk
from runtime.disk.real import RealDisk
from tests.conformance.simulated_kit import SimulatedDiskKit


class DiskKit(Protocol):
    """One machine with one folder."""

    disk: Disk
    """The disk of the process that runs; not locked yet."""

    def settle(self, until: Callable[[], bool]) -> None:
        """Let time pass, and callbacks be called, until the condition holds (it must)."""

    def another_process(self) -> Disk:
        """A disk on the same folder, as a second process has it."""

    def restart(self) -> Disk:
        """Kill the process without notice (no loss of power) and start another: its disk."""

    def end(self) -> None:
        """Clean up."""


class RealDiskKit:
    def __init__(self, folder: Path) -> None:
        self._root = folder / "node"
        self._loop = asyncio.new_event_loop()
        self._disks: list[RealDisk] = []
        self.disk: Disk = self.another_process()

    def settle(self, until: Callable[[], bool]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(20):
                while not until():  # noqa: ASYNC110 - a condition, not an event
                    await asyncio.sleep(0.001)

        self._loop.run_until_complete(wait())

    def another_process(self) -> Disk:
        self._disks.append(RealDisk(self._root, AsyncioClock(self._loop)))
        return self._disks[-1]

    def restart(self) -> Disk:
        # As far as a folder can tell, a process that closed without a sync was killed.
        self.disk.close()
        self.disk = self.another_process()
        return self.disk

    def end(self) -> None:
        for disk in self._disks:
            disk.close()
        self._loop.close()


DISK_KITS: dict[str, Callable[[Path], DiskKit]] = {
    "real": RealDiskKit,
    "simulated": SimulatedDiskKit,
}
