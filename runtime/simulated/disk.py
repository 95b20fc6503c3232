"""A simulated disk: `runtime.disk.interface.Disk` on a platter, for one process.

Rule: reads and writes take effect at once and take no time. Syncs and background work take a time
that the profile draws, and finish in the order of their calls. Every fault comes from `DiskFaults`,
which belongs to the node and outlives its processes.
"""

import errno
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from runtime.disk.interface import AppendFile, FolderInUseError
from runtime.disk.paths import checked, checked_folder
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.platter import Inode, Platter, folder_of
from runtime.simulated.process import Death, SimulatedProcess

T = TypeVar("T")
BESIDE = ".part"
"""The suffix of the file that `replace` writes before it renames it."""


class _Job(NamedTuple):
    run: Callable[[], Callable[[], None]]
    """Does the work and returns the callback."""
    label: str


class SimulatedFile:
    """An open file. After a failed sync it never syncs again."""

    def __init__(self, disk: "SimulatedDisk", name: str, inode: Inode) -> None:
        self.inode = inode
        self._disk = disk
        self._name = name
        self._closed = False
        self._failed = False

    @property
    def name(self) -> str:
        return self._name

    def append(self, data: bytes) -> None:
        self._check_usable()
        self._disk.write(self.inode, bytes(data))

    def size(self) -> int:
        return len(self.inode.content)

    def truncate(self, size: int) -> None:
        self._check_usable()
        now = len(self.inode.content)
        assert 0 <= size <= now, f"a cut to {size} of {now} bytes of {self._name}"
        self._disk.step("write")
        self.inode.truncate(size)

    def sync(self) -> None:
        self._check_usable()
        self._disk.block()
        self.sync_now(self.inode.changes)

    def close(self) -> None:
        self._closed = True

    def sync_now(self, upto: int) -> None:
        """Make the changes before number `upto` durable, even if the file is closed now."""
        if self._failed:
            raise OSError(errno.EIO, "an earlier sync of this file failed (simulated)", self._name)
        try:
            self._disk.sync_inode(self.inode, upto)
        except OSError:
            self._failed = True
            raise

    def _check_usable(self) -> None:
        assert not self._closed, f"{self._name} was closed"


class SimulatedDisk:
    """One node's folder, as one of its processes uses it."""

    def __init__(self, process: SimulatedProcess, platter: Platter, faults: DiskFaults) -> None:
        self._process = process
        self._platter = platter
        self._faults = faults
        self._random = process.world.random(f"disk/{process.node_id}")
        self._jobs: deque[_Job] = deque()
        self._busy = False
        self._in_background = False
        self._closed = False
        faults.on_profile(self._start_next)
        process.on_death(self._die)

    def lock(self) -> None:
        self._process.ensure_alive()
        assert self._faults.holder is not self, "the folder is locked already"
        if self._faults.holder is not None:
            raise FolderInUseError(
                f"the folder of node {self._process.node_id} is in use by another process; "
                "stop that one, or name another folder"
            )
        self._faults.holder = self

    def close(self) -> None:
        if self._closed:
            return
        self._process.ensure_alive()
        while self._jobs:
            self._finish(self._jobs.popleft())
        self._let_go()

    def make_folder(self, folder: str) -> None:
        self.step("create")
        self._platter.add_folder(checked_folder(folder))

    def list(self, folder: str) -> list[str]:
        self._process.ensure_alive()
        checked_folder(folder)
        start = len(folder) + 1 if folder else 0
        return sorted(name[start:] for name in self._platter.names if folder_of(name) == folder)

    def exists(self, name: str) -> bool:
        self._process.ensure_alive()
        return checked(name) in self._platter.names

    def size(self, name: str) -> int:
        return len(self._inode(name).content)

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        content = self._inode(name).content
        self._faults.check("read")
        end = len(content) if length is None else position + length
        return bytes(content[position:end])

    def open(self, name: str) -> SimulatedFile:
        self._process.ensure_alive()
        inode = self._platter.names.get(checked(name))
        if inode is None:
            self._check_folder(name)
            self.step("create")
            inode = self._platter.create(name)
        return SimulatedFile(self, name, inode)

    def rename(self, source: str, target: str) -> None:
        self._check_folder(target)
        self._inode(source)
        self.step("rename")
        self._platter.rename(source, target)

    def unlink(self, name: str) -> None:
        self._inode(name)
        self.step("unlink")
        self._platter.unlink(name)

    def sync_folder(self, folder: str) -> None:
        self.step("sync_folder")
        self.block()
        self._platter.sync_folder(folder)

    def replace(self, name: str, data: bytes) -> None:
        self._check_folder(name)
        beside = name + BESIDE
        self.step("create")
        inode = self._platter.create(beside)
        try:
            self.write(inode, data)
            self.block()
            self.sync_inode(inode, inode.changes)
            self.step("rename")
        except OSError:
            self._platter.unlink(beside)
            raise
        self._platter.rename(beside, name)
        self.sync_folder(folder_of(name))

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        self._process.ensure_alive()
        if not isinstance(file, SimulatedFile):
            raise TypeError("a file of another disk")
        upto = file.inode.changes

        def run() -> Callable[[], None]:
            try:
                file.sync_now(upto)
            except OSError as error:
                failure = error
                return lambda: on_done(failure)
            return lambda: on_done(None)

        self._enqueue(_Job(run, "sync"))

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        self._process.ensure_alive()

        def run() -> Callable[[], None]:
            self._in_background = True
            try:
                result = work()
            except OSError as error:
                failure = error
                return lambda: on_done(None, failure)
            finally:
                self._in_background = False
            return lambda: on_done(result, None)

        self._enqueue(_Job(run, "background"))

    def free_bytes(self) -> int:
        self._process.ensure_alive()
        return self._faults.free_bytes(self._platter.used_bytes())

    def write(self, inode: Inode, data: bytes) -> None:
        """Append all bytes, or raise and append none. Only a kill leaves a part."""
        torn = self._faults.torn_at_this_step(len(data))
        if torn is not None:
            inode.append(data[:torn])
        self.step("write")
        if self._faults.capacity_bytes is not None:
            room = self._faults.free_bytes(self._platter.used_bytes())
            if room < len(data):
                raise OSError(errno.ENOSPC, "No space left on device (simulated)")
        if data:
            inode.append(data)

    def sync_inode(self, inode: Inode, upto: int) -> None:
        """Make changes durable now. If that fails they are lost for good, as in a kernel."""
        try:
            self.step("sync")
        except OSError:
            inode.fail_sync(upto)
            raise
        inode.sync(upto)

    def step(self, operation: str) -> None:
        """Count one change of the disk; be killed or fail here if a fault says so."""
        self._process.ensure_alive()
        if self._faults.dies_at_this_step():
            self._process.kill()
            self._process.ensure_alive()
        self._faults.check(operation)

    def block(self) -> None:
        """Let a blocking sync take time: if it runs on the loop, the process waits for it."""
        if not self._in_background and self._process.world.current is self._process:
            self._process.hold(self._faults.profile.draw_us(self._random) or 0)

    def _inode(self, name: str) -> Inode:
        self._process.ensure_alive()
        inode = self._platter.names.get(checked(name))
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory (simulated)", name)
        return inode

    def _check_folder(self, name: str) -> None:
        self._process.ensure_alive()
        if folder_of(checked(name)) not in self._platter.folders:
            raise FileNotFoundError(errno.ENOENT, "No such folder (simulated)", name)

    def _enqueue(self, job: _Job) -> None:
        self._jobs.append(job)
        self._start_next()

    def _start_next(self) -> None:
        if self._busy or not self._jobs or not self._process.alive:
            return
        delay_us = self._faults.profile.draw_us(self._random)
        if delay_us is None:
            return
        self._busy = True
        self._process.schedule(delay_us, self._finish_first, "disk")

    def _finish_first(self) -> None:
        self._busy = False
        if self._jobs:
            self._finish(self._jobs.popleft())
            self._start_next()

    def _finish(self, job: _Job) -> None:
        # The callback is an event of its own, so that a kill can come between the two.
        self._process.schedule(0, job.run(), job.label)

    def _die(self, how: Death) -> None:
        self._jobs.clear()
        self._let_go()
        self._platter.forget_caches()

    def _let_go(self) -> None:
        self._closed = True
        self._faults.drop_on_profile(self._start_next)
        if self._faults.holder is self:
            self._faults.holder = None
