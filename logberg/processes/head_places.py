"""Places to which heads are written: a folder on another disk, or object storage.

Rule: a file appears under its name when all of it is there, and is never replaced. The place is
asked on a thread of its own, so the node's loop and its disk's thread go on whatever it does.
"""

import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from audit.places.folder import NoLogError
from audit.places.remote import is_url, open_tree, without_secrets
from audit.places.remote_writing import S3, RemotePlace
from controller.signing.head_drop import DropPlace
from logberg.processes.locked_objects import LockedObjects
from runtime.clock import ThreadsafeClock
from runtime.disk.real import RealDisk
from runtime.disk.worker import Worker

T = TypeVar("T")
_PART: Final = ".part"


def open_head_place(where: str, lock_days: int = 0) -> DropPlace:
    """Open the place that a path or URL names. Raises OSError."""
    if not is_url(where) or where.startswith("file://"):
        return HeadFolder(Path(where.removeprefix("file://")))
    if not where.startswith(S3):
        raise OSError(f"{without_secrets(where)}: heads go to a folder or to s3://BUCKET/PATH")
    return HeadObjects(where, LockedObjects(where, lock_days))


def reading_place(where: str) -> DropPlace:
    """Open a place that is only read, and must be there. Raises OSError."""
    if not is_url(where) or where.startswith("file://"):
        folder = Path(where.removeprefix("file://"))
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"{folder} is no folder")
        return HeadFolder(folder)
    if not where.startswith(S3):
        raise OSError(f"{without_secrets(where)}: heads lie in a folder or in s3://BUCKET/PATH")
    return HeadObjects(where, None)


class HeadFolder:
    """`controller.signing.head_drop.DropPlace` over a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = RealDisk(folder)

    def names(self) -> list[str]:
        self._must_be_there()
        return self._disk.list("")

    def read(self, name: str) -> bytes:
        return self._disk.read(name)

    def put_new(self, name: str, content: bytes) -> bool:
        self._must_be_there()
        self._disk.make_folder("")
        part = f"{name}.{secrets.token_hex(4)}{_PART}"
        file = self._disk.open(part)
        try:
            file.append(content)
            file.sync()
            # A link, unlike a rename, replaces nothing.
            os.link(self._folder / part, self._folder / name)
        except FileExistsError:
            return False
        finally:
            file.close()
            with suppress(OSError):
                self._disk.unlink(part)
        self._disk.sync_folder("")
        return True

    def _must_be_there(self) -> None:
        if not self._folder.parent.is_dir():
            # A file system that is not mounted must not look like an empty place.
            raise FileNotFoundError(errno.ENOENT, f"{self._folder.parent} is not there")


class HeadObjects:
    """`controller.signing.head_drop.DropPlace` over a part of a bucket."""

    def __init__(self, url: str, writing: LockedObjects | None) -> None:
        """`writing`: None if it is only read."""
        self._url = url
        self._writing = writing

    def names(self) -> list[str]:
        return RemotePlace(self._url).names()

    def read(self, name: str) -> bytes:
        try:
            return open_tree(self._url).read(name)
        except NoLogError as error:
            raise OSError(str(error)) from error

    def put_new(self, name: str, content: bytes) -> bool:
        assert self._writing is not None, "this place is only read"
        return self._writing.put_new(name, content)


class HeadPlaceThread:
    """`controller.signing.head_drop.Drop` over a place, on a thread of its own."""

    def __init__(self, where: str, lock_days: int, clock: ThreadsafeClock) -> None:
        self._where = where
        self._lock_days = lock_days
        self._worker = Worker("heads", clock)
        self._place: DropPlace | None = None
        self.location = without_secrets(where) if is_url(where) else where

    def run(
        self,
        work: Callable[[DropPlace], T],
        on_done: Callable[[T | None, OSError | None], None],
    ) -> None:
        """Do blocking work on the place, then call `on_done` on the loop."""
        self._worker.run(lambda: self._do(work), on_done)

    def _do(self, work: Callable[[DropPlace], T]) -> T:
        try:
            if self._place is None:
                self._place = open_head_place(self._where, self._lock_days)
            return work(self._place)
        except (OSError, ValueError, RuntimeError) as error:
            # Libraries of object storage raise these for what a server answers.
            self._place = None
            raise error if isinstance(error, OSError) else OSError(str(error)) from error
