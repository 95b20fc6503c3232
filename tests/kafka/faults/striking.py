"""The faults: each strikes the leading controller and is healed after a while.

    kill    SIGKILL; the process is started again
    pause   SIGSTOP, then SIGCONT
    cut     it and the other controllers exchange nothing; brokers and clients still reach it
    disk    its file system has no room but for a megabyte, then it has again

Rule: only processes that the cluster started are touched. Every fault is healed, also if the run
fails.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from logberg.local.child import Child
from tests.kafka.our_controllers import CONTROLLERS, OurControllers

_LEFT: Final = 1_000_000
DISK_MIB: Final = 96
"""The file system of each controller when its disk will be full. A controller keeps 64 MiB in
reserve."""


class StruckCluster(Protocol):
    """A cluster whose leader can be found and started again."""

    def leading(self, limit_s: float = 30.0) -> Child:
        """Wait for a leader and return its process."""
        ...

    def revive(self, child: Child) -> None:
        """Start a controller that was killed."""
        ...


class Fault(Protocol):
    """One kind of fault."""

    hold_s: float
    """How long it lasts."""

    def strike(self, leader: Child) -> None: ...

    def heal(self, leader: Child) -> None: ...


class KilledLeader:
    """SIGKILL."""

    hold_s = 2.0

    def __init__(self, cluster: StruckCluster) -> None:
        self._cluster = cluster

    def strike(self, leader: Child) -> None:
        leader.kill()

    def heal(self, leader: Child) -> None:
        self._cluster.revive(leader)


class PausedLeader:
    """SIGSTOP."""

    hold_s = 8.0

    def strike(self, leader: Child) -> None:
        leader.signal(signal.SIGSTOP)

    def heal(self, leader: Child) -> None:
        leader.signal(signal.SIGCONT)


class CutLeader:
    """A network cut between the controllers. Only our controllers have relays between them."""

    hold_s = 8.0

    def __init__(self, cluster: OurControllers) -> None:
        self._cluster = cluster

    def strike(self, leader: Child) -> None:
        self._cluster.cut_off(self._cluster.number_of(leader))

    def heal(self, leader: Child) -> None:
        del leader
        self._cluster.heal()


class FullDisk:
    """A file system without room; see `small_disks`."""

    hold_s = 8.0

    def __init__(self, cluster: OurControllers) -> None:
        self._cluster = cluster

    def strike(self, leader: Child) -> None:
        folder = self._folder(leader)
        figures = os.statvfs(folder)
        with (folder / "ballast").open("wb") as file:
            file.write(bytes(max(0, figures.f_bavail * figures.f_frsize - _LEFT)))

    def heal(self, leader: Child) -> None:
        (self._folder(leader) / "ballast").unlink(missing_ok=True)

    def _folder(self, leader: Child) -> Path:
        return self._cluster.local.folder / f"controller-{self._cluster.number_of(leader)}"


class NoSmallDiskError(Exception):
    """No file system can be mounted here: that needs root."""


@contextmanager
def small_disks(folder: Path) -> Iterator[None]:
    """Give each controller of a cluster in `folder`/cluster a file system of its own.

    Raises NoSmallDiskError.
    """
    mounted: list[Path] = []
    try:
        for n in CONTROLLERS:
            place = folder / "cluster" / f"controller-{n}"
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(place)]
            done = subprocess.run(mount, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NoSmallDiskError(done.stderr.strip())
            mounted.append(place)
        yield
    finally:
        for place in mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)
