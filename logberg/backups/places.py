"""Where backups lie: a folder of this machine, or object storage by an s3:// URL.

Rule: a backup appears under its name when all of it is there. A place lists only names that look
like those of backups, so other files in it are left alone.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from audit.places.folder import NoLogError
from audit.places.remote import Tree, is_url, open_tree, without_secrets
from audit.places.remote_writing import S3, ObjectWriter, RemotePlace
from logberg.backups.backup_format import BackupError
from logberg.backups.reading import BackupFile
from runtime.disk.interface import AppendFile, Disk
from runtime.disk.real import RealDisk

SUFFIX: Final = ".backup"
_PART: Final = ".part"
_LEFTOVER_MS: Final = 24 * 3600 * 1000
_TIME: Final = "%Y%m%dT%H%M%S"
_NAME: Final = re.compile(r"([0-9]{8}T[0-9]{6})\.([0-9]{3})Z-([0-9]{20})\.backup")


class BackupName(NamedTuple):
    """What a backup's name says. Names sort by the time at which they were made."""

    made_at_ms: int
    end_offset: int

    def __str__(self) -> str:
        seconds, milliseconds = divmod(self.made_at_ms, 1000)
        time = datetime.fromtimestamp(seconds, UTC).strftime(_TIME)
        return f"{time}.{milliseconds:03d}Z-{self.end_offset:020d}{SUFFIX}"

    @classmethod
    def parse(cls, text: str) -> "BackupName | None":
        """Read a file's name; None for other files."""
        found = _NAME.fullmatch(text)
        if found is None:
            return None
        try:
            time = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
        except ValueError:
            return None
        return cls(int(time.timestamp()) * 1000 + int(found[2]), int(found[3]))


class BackupWriter(Protocol):
    """A backup that is being written."""

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError."""

    def close(self) -> None:
        """Make it durable, under its name. Raises OSError."""

    def give_up(self) -> None:
        """Remove what was written."""


class BackupPlace(Protocol):
    """Where backups lie."""

    @property
    def location(self) -> str:
        """The path or URL, without secrets, for messages."""

    def names(self) -> list[str]:
        """Return the names of the backups here, the oldest first. Raises OSError."""

    def create(self, name: str) -> BackupWriter:
        """Begin a backup of this name. Raises OSError."""

    def open(self, name: str) -> BackupFile:
        """Open a backup. Its bytes are not looked at yet."""

    def remove(self, name: str) -> None:
        """Remove a backup. Raises OSError."""


def place_of(where: str) -> BackupPlace:
    """Return the place that a path or URL names. Raises BackupError, OSError."""
    if not is_url(where) or where.startswith("file://"):
        return DiskPlace(RealDisk(where.removeprefix("file://")), where)
    if not where.startswith(S3):
        raise BackupError(
            f"{without_secrets(where)}: backups are written to a folder or to s3://BUCKET/PATH"
        )
    return ObjectPlace(where)


def open_backup(where: str) -> BackupFile:
    """Open the backup that a path or URL names. Raises BackupError, OSError."""
    if is_url(where) and not where.startswith("file://"):
        head, mark, options = where.partition("?")
        folder, _, name = head.rpartition("/")
        if "://" not in folder:
            raise BackupError(f"{without_secrets(where)} names no backup: add its name")
        try:
            return TreeFile(open_tree(f"{folder}{mark}{options}"), name)
        except NoLogError as error:
            raise BackupError(str(error)) from None
    path = Path(where.removeprefix("file://"))
    if not path.is_file():
        raise BackupError(f"{path} is no file: name a backup; `logberg backup list` shows them")
    return DiskFile(RealDisk(path.parent), path.name, str(path))


class DiskFile:
    """A backup in a folder."""

    def __init__(self, disk: Disk, name: str, location: str) -> None:
        self._disk = disk
        self._name = name
        self.location = location

    def size(self) -> int:
        return self._disk.size(self._name)

    def read(self, position: int, length: int) -> bytes:
        return self._disk.read(self._name, position, length)


class DiskPlace:
    """A folder, as a disk."""

    def __init__(self, disk: Disk, location: str) -> None:
        self._disk = disk
        self.location = location

    def names(self) -> list[str]:
        return [name for name in self._disk.list("") if BackupName.parse(name) is not None]

    def create(self, name: str) -> BackupWriter:
        self._disk.make_folder("")
        self._remove_leftovers(name)
        return _DiskWriter(self._disk, name)

    def _remove_leftovers(self, name: str) -> None:
        """Remove what processes that were killed have left, once it is a day old."""
        now = BackupName.parse(name)
        for part in self._disk.list(""):
            found = BackupName.parse(part.removesuffix(_PART))
            if now is None or found is None or not part.endswith(_PART):
                continue
            if found.made_at_ms < now.made_at_ms - _LEFTOVER_MS:
                self._disk.unlink(part)

    def open(self, name: str) -> DiskFile:
        return DiskFile(self._disk, name, f"{self.location.rstrip('/')}/{name}")

    def remove(self, name: str) -> None:
        self._disk.unlink(name)
        self._disk.sync_folder("")


class _DiskWriter:
    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._file: AppendFile = disk.open(name + _PART)
        self._file.truncate(0)

    def write(self, data: bytes) -> None:
        self._file.append(data)

    def close(self) -> None:
        self._file.sync()
        self._file.close()
        self._disk.rename(self._name + _PART, self._name)
        self._disk.sync_folder("")

    def give_up(self) -> None:
        self._file.close()
        with suppress(OSError):
            self._disk.unlink(self._name + _PART)


class TreeFile:
    """A backup in object storage."""

    def __init__(self, tree: Tree, name: str) -> None:
        self._tree = tree
        self._name = name
        self.location = f"{tree.location}/{name}"

    def size(self) -> int:
        return self._tree.size(self._name)

    def read(self, position: int, length: int) -> bytes:
        return self._tree.read(self._name, position, length)


class ObjectPlace:
    """A bucket, or a part of one."""

    def __init__(self, url: str) -> None:
        """Raises OSError."""
        self._url = url
        self._place = RemotePlace(url)
        self.location = without_secrets(url)

    def names(self) -> list[str]:
        return [name for name in self._place.names() if BackupName.parse(name) is not None]

    def create(self, name: str) -> ObjectWriter:
        return self._place.writer(name)

    def open(self, name: str) -> TreeFile:
        # A tree of its own each time: it keeps what it knows of files that it has open.
        return TreeFile(open_tree(self._url), name)

    def remove(self, name: str) -> None:
        self._place.remove([name])
