"""Archives of segments: a folder, or a part of a bucket of object storage.

Rule: a segment's file appears under its name when all of it is there. Names that are not those of
segments are left alone. What a writer that was killed has left there, has another name.
"""

import errno
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from audit.places.folder import NoLogError
from audit.places.remote import Tree, is_url, open_tree, without_secrets
from audit.places.remote_writing import S3, RemotePlace
from ledger.archive_place import ArchivePlace, ArchiveWriter
from ledger.segments import segment_base
from runtime.disk.interface import AppendFile
from runtime.disk.real import RealDisk

_PART: Final = ".part"


def open_archive(where: str) -> ArchivePlace:
    """Open the archive that a path or URL names. Raises OSError."""
    if not is_url(where) or where.startswith("file://"):
        return FolderArchive(Path(where.removeprefix("file://")))
    if not where.startswith(S3):
        raise OSError(f"{without_secrets(where)}: an archive is a folder or s3://BUCKET/PATH")
    return ObjectArchive(where)


class FolderArchive:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = RealDisk(folder)

    def names(self) -> list[str]:
        names = [name for name in self._disk.list("") if segment_base(name) is not None]
        if not names and not self._folder.parent.is_dir():
            # A file system that is not mounted must not look like an empty archive.
            raise FileNotFoundError(errno.ENOENT, f"{self._folder.parent} is not there")
        return names

    def read(self, name: str, position: int, length: int) -> bytes:
        return self._disk.read(name, position, length)

    def create(self, name: str) -> ArchiveWriter:
        if not self._folder.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"{self._folder.parent} is not there")
        self._disk.make_folder("")
        return _FolderWriter(self._disk, name)


class _FolderWriter:
    """Writes under a name of its own: two controllers may copy one segment at the same time."""

    def __init__(self, disk: RealDisk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._file: AppendFile = disk.open(f"{name}.{secrets.token_hex(4)}{_PART}")

    def write(self, data: bytes) -> None:
        self._file.append(data)

    def close(self) -> None:
        self._file.sync()
        self._file.close()
        self._disk.rename(self._file.name, self._name)
        self._disk.sync_folder("")

    def give_up(self) -> None:
        self._file.close()
        with suppress(OSError):
            self._disk.unlink(self._file.name)


class ObjectArchive:
    """A part of a bucket."""

    def __init__(self, url: str) -> None:
        """Raises OSError."""
        self._url = url
        self._place = RemotePlace(url)
        self._tree: Tree = self._open()

    def _open(self) -> Tree:
        try:
            return open_tree(self._url)
        except NoLogError as error:
            raise OSError(str(error)) from error

    def names(self) -> list[str]:
        # A tree keeps what it knows of files; those that have come since are new to it.
        self._tree = self._open()
        return [name for name in self._place.names() if segment_base(name) is not None]

    def read(self, name: str, position: int, length: int) -> bytes:
        if not position:
            self._tree = self._open()
        return self._tree.read(name, position, length)

    def create(self, name: str) -> ArchiveWriter:
        return _SegmentObjectWriter(self._place, name)


class _SegmentObjectWriter:
    """Writes under a name of its own, as `_FolderWriter` does.

    A stream to object storage can't be dropped: closing it lets the object appear, also when only
    a part was written.
    """

    def __init__(self, place: RemotePlace, name: str) -> None:
        self._place = place
        self._name = name
        self._part = f"{name}.{secrets.token_hex(4)}{_PART}"
        self._writer = place.writer(self._part)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()
        self._place.rename(self._part, self._name)

    def give_up(self) -> None:
        self._writer.give_up()
