"""A node's folder on a real file system.

Rule: it keeps the promises of `runtime.disk.interface`. It also undoes a write that failed halfway:
if an append fails (for example on a full disk), the file is cut to its length before the append.

Folders are made with mode 0700 and files with 0600, because a metadata log names every topic, user
and address of a cluster. Data is made durable with fdatasync, names by an fsync of their folder.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

from runtime.clock import ThreadsafeClock
from runtime.defects import OnDefect, stop_the_process
from runtime.disk.interface import AppendFile, FolderInUseError
from runtime.disk.paths import BadNameError, checked, checked_folder
from runtime.disk.thread import DiskThread

T = TypeVar("T")

LOCK_NAME = ".lock"
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW


class RealFile:
    """`runtime.disk.interface.AppendFile` over a file descriptor."""

    def __init__(self, name: str, path: Path, on_closed: Callable[["RealFile"], None]) -> None:
        self._name = name
        self._on_closed = on_closed
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _OPEN, 0o600)
        self._size = os.fstat(self._fd).st_size
        self._failed: OSError | None = None
        self._closed = False
        self._syncs_waiting = 0

    @property
    def name(self) -> str:
        return self._name

    def append(self, data: bytes) -> None:
        self._check_usable()
        try:
            _write_all(self._fd, data)
        except OSError:
            self._take_back()
            raise
        self._size += len(data)

    def size(self) -> int:
        return self._size

    def truncate(self, size: int) -> None:
        self._check_usable()
        assert 0 <= size <= self._size, f"a cut to {size} of {self._size} bytes of {self._name}"
        os.ftruncate(self._fd, size)
        self._size = size

    def sync(self) -> None:
        self._check_usable()
        self.sync_now()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._on_closed(self)
            if self._syncs_waiting == 0:
                os.close(self._fd)

    def sync_now(self) -> None:
        """Sync, even if the file was closed after `expect_sync`."""
        if self._failed is not None:
            raise OSError(
                errno.EIO, f"an earlier sync of this file failed ({self._failed})", self._name
            )
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self._failed = error
            raise

    def expect_sync(self) -> None:
        """Keep the descriptor open until `sync_ended`, even after `close`."""
        self._check_usable()
        self._syncs_waiting += 1

    def sync_ended(self) -> None:
        """A sync of `expect_sync` has ended. Called on the loop, as `close` is."""
        self._syncs_waiting -= 1
        if self._closed and self._syncs_waiting == 0:
            os.close(self._fd)

    def _check_usable(self) -> None:
        assert not self._closed, f"{self._name} was closed"

    def _take_back(self) -> None:
        """Cut off the bytes of a failed append. If that fails too, read the true size."""
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)
        self._size = os.fstat(self._fd).st_size


class RealDisk:
    """`runtime.disk.interface.Disk` over a folder of the file system.

    A program without a loop passes no clock. Then there is no background work. `lock` creates the
    folder; reading needs no lock.
    """

    def __init__(
        self,
        root: Path | str,
        clock: ThreadsafeClock | None = None,
        *,
        on_defect: OnDefect = stop_the_process,
        on_synced: Callable[[str, float], None] = lambda _name, _seconds: None,
    ) -> None:
        """`on_synced` is called on the loop with a file's name and how long its sync took."""
        self._root = Path(root)
        self._on_synced = on_synced
        self._thread = None if clock is None else DiskThread("disk", clock, on_defect)
        self._files: set[RealFile] = set()
        self._lock_fd: int | None = None

    @property
    def root(self) -> Path:
        """The folder."""
        return self._root

    # -- the folder as a whole ---------------------------------------------------------------

    def lock(self) -> None:
        assert self._lock_fd is None, "the folder is locked already"
        _make_folders(self._root)
        fd = os.open(self._root / LOCK_NAME, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise FolderInUseError(
                f"the folder {self._root} is in use by another process"
                f"{f' (process id {holder})' if holder else ''}: "
                "stop that process, or give this node a folder of its own"
            ) from None
        except OSError:
            os.close(fd)
            raise
        self._lock_fd = fd
        # Only for the message above. The lock itself is in the kernel and ends with the process.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
        for file in list(self._files):
            file.close()
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def free_bytes(self) -> int:
        folder = self._root
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        figures = os.statvfs(folder)
        return figures.f_bavail * figures.f_frsize

    # -- names -------------------------------------------------------------------------------

    def make_folder(self, folder: str) -> None:
        _make_folders(self._folder(folder))

    def list(self, folder: str) -> list[str]:
        try:
            with os.scandir(self._folder(folder)) as entries:
                names = [e.name for e in entries if e.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name != LOCK_NAME)

    def exists(self, name: str) -> bool:
        return self._path(name).is_file()

    def size(self, name: str) -> int:
        return self._path(name).stat().st_size

    def rename(self, source: str, target: str) -> None:
        self._path(source).replace(self._path(target))

    def unlink(self, name: str) -> None:
        self._path(name).unlink()

    def sync_folder(self, folder: str) -> None:
        _sync_folder(self._folder(folder))

    # -- contents ----------------------------------------------------------------------------

    def read(self, name: str, position: int = 0, length: int | None = None) -> bytes:
        fd = os.open(self._path(name), os.O_RDONLY | _OPEN)
        try:
            wanted = max(0, os.fstat(fd).st_size - position)
            if length is not None:
                wanted = min(wanted, length)
            return _read_at(fd, position, wanted)
        finally:
            os.close(fd)

    def open(self, name: str) -> RealFile:
        file = RealFile(name, self._path(name), self._files.discard)
        self._files.add(file)
        return file

    def replace(self, name: str, data: bytes) -> None:
        path = self._path(name)
        part = path.with_name(path.name + ".part")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OPEN, 0o600)
        try:
            try:
                _write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            part.replace(path)
        except OSError:
            # On a full disk the incomplete file would take space that others need.
            with suppress(OSError):
                part.unlink()
            raise
        _sync_folder(path.parent)

    # -- off the loop ------------------------------------------------------------------------

    def sync(self, file: AppendFile, on_done: Callable[[OSError | None], None]) -> None:
        assert isinstance(file, RealFile)
        file.expect_sync()

        took_s = 0.0

        def work() -> None:
            nonlocal took_s
            began = time.monotonic()
            file.sync_now()
            took_s = time.monotonic() - began

        def done(_: object, error: OSError | None) -> None:
            file.sync_ended()
            if error is None:
                self._on_synced(file.name, took_s)
            on_done(error)

        self._background().submit(work, done)

    def in_background(
        self, work: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]
    ) -> None:
        self._background().submit(
            work, lambda result, error: on_done(cast("T | None", result), error)
        )

    def _background(self) -> DiskThread:
        assert self._thread is not None, "a disk without a clock has no background work"
        return self._thread

    def _path(self, name: str) -> Path:
        if checked(name) == LOCK_NAME:
            raise BadNameError(f"{LOCK_NAME} is the disk's own")
        return self._root / name

    def _folder(self, folder: str) -> Path:
        return self._root / checked_folder(folder)


def _write_all(fd: int, data: bytes) -> None:
    """Write all bytes. The kernel may take fewer in one call."""
    written = os.write(fd, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(fd, rest) :]


def _read_at(fd: int, position: int, wanted: int) -> bytes:
    pieces = []
    while wanted > 0:
        piece = os.pread(fd, wanted, position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
        wanted -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _make_folders(path: Path) -> None:
    """Make a folder and its parents, and sync the parent of each new folder."""
    if path.is_dir():
        return
    _make_folders(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "a file stands where a folder must be", str(path))
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
