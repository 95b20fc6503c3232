"""Opens the replicas that a place means: what people type after `logberg audit` and `logberg log`.

Rule: accept every form in which people have a log. These are a node's folder, its log folder, the
folder of `logberg up` (all its controllers), a copy, a folder of segments only, an archive of any
of these (.tar, .tar.gz, .tar.zst, .zip), segments compressed one by one (.log.gz), and a URL of
object storage. All are read, none is written to, and nothing is unpacked on disk.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from audit.places.archived_disk import with_archive
from audit.places.archives import is_archive, open_archive, with_packed_segments
from audit.places.folder import LocalTree, NoLogError, may_be_written
from audit.places.remote import Tree, is_url, open_tree
from audit.places.streams import CachedTree
from audit.places.tree_disk import TreeDisk
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from ledger.segments import ARCHIVE_FOLDER, LOG_FOLDER, segment_base
from quorum.journal.damage import DamagedError
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import decode_manifest
from runtime.disk.interface import Disk

__all__ = ["NoLogError", "Replica", "one_replica", "open_all", "open_replicas"]

_PACKED: Final = ".gz"
_CONTROLLER: Final = "controller-"


class Replica(msgspec.Struct, frozen=True):
    """One controller's log."""

    name: str
    """The folder's name; unique among the replicas that were opened together."""
    location: str
    """A path or a URL, for messages."""
    disk: Disk
    """Read-only, laid out as a node's folder: `log/`, `archive/`, `checkpoints/`."""
    synced_to: LogMark | None = None
    """The mark in the manifest, if there is one. All bytes before it must be right."""
    live: bool = False
    """A node may be writing, so an unfinished tail is no damage."""
    problem: str = ""
    """What is wrong besides the log: a manifest that can't be read."""

    def reader(self) -> LedgerReader:
        """Open the ledger. Raises NoLogError, LedgerError, OSError."""
        try:
            return LedgerReader(self.disk, synced_to=self.synced_to)
        except LedgerError as error:
            if type(error) is not LedgerError:
                raise
            raise NoLogError(f"{self.location}: {error}") from error


def open_replicas(where: str) -> list[Replica]:
    """Return the replicas at a place, at least one. Raises NoLogError, OSError."""
    if is_url(where) and not where.startswith("file://"):
        return _in_url(where)
    path = Path(where.removeprefix("file://"))
    if path.is_dir():
        if path.name == LOG_FOLDER and not (path / LOG_FOLDER).is_dir():
            path = path.parent
        return [_with_liveness(found, path) for found in _in_tree(LocalTree(path), path.name)]
    if not path.exists():
        raise NoLogError(f"{path} is not there.")
    if is_archive(path.name):
        tree = open_archive(LocalTree(path.parent), path.name)
        return _in_tree(tree, _stem(path.name))
    raise NoLogError(
        f"{path} is a file, and its name is not that of an archive (.tar, .tar.gz, .tgz, .tar.zst, "
        ".zip). Name the folder that it lies in."
    )


def open_all(places: Iterable[str]) -> list[Replica]:
    """Return the replicas of several places, each once, with unique names.

    Raises as `open_replicas`.
    """
    opened = (replica for where in places for replica in open_replicas(where))
    replicas = list({replica.location: replica for replica in opened}.values())
    names = [replica.name for replica in replicas]
    if len(set(names)) == len(names):
        return replicas
    return [msgspec.structs.replace(replica, name=replica.location) for replica in replicas]


def one_replica(where: str) -> Replica:
    """Return the replica at a place; of several, the one with the longest log.

    A replica that can't be opened counts as empty, unless it is the only one.
    """
    replicas = open_replicas(where)
    if len(replicas) == 1:
        return replicas[0]
    return max(replicas, key=_log_end)


def _log_end(replica: Replica) -> int:
    try:
        return replica.reader().log_end
    except (NoLogError, LedgerError, OSError):
        return -1


def _in_url(url: str) -> list[Replica]:
    head, question, query = url.partition("?")
    head = head.rstrip("/")
    name = head.rpartition("/")[2]
    if is_archive(name):
        folder = CachedTree(open_tree(f"{head.removesuffix(name)}{question}{query}"))
        return _in_tree(_archive_in(folder, name), _stem(name))
    tree = CachedTree(open_tree(url))
    try:
        if name == LOG_FOLDER and not tree.folders(""):
            head = head.removesuffix(name).rstrip("/")
            tree = CachedTree(open_tree(f"{head}{question}{query}"))
        return _in_tree(tree, head.rpartition("/")[2])
    except OSError as error:
        raise NoLogError(str(error)) from error


def _archive_in(folder: Tree, name: str) -> Tree:
    """Open an archive in object storage. Raises NoLogError."""
    try:
        folder.size(name)
    except OSError as error:
        raise NoLogError(f"{folder.location}: {name} can't be read: {error}") from error
    return open_archive(folder, name)


def _in_tree(tree: Tree, name: str) -> list[Replica]:
    """Return the replicas in a tree: the one at its top, or those in the folders there."""
    if kind := _kind(tree, ""):
        return [_replica(tree, "", name or tree.location, kind)]
    folders = tree.folders("")
    controllers = [folder for folder in folders if folder.startswith(_CONTROLLER)]
    for candidates in (controllers, folders):
        found = [(folder, kind) for folder in candidates if (kind := _kind(tree, folder))]
        if found:
            return [_replica(tree, folder, folder, kind) for folder, kind in found]
    # An archive may hold the archived folder as its only entry.
    if len(folders) == 1:
        inner = _Below(tree, folders[0])
        if inner.folders(""):
            return _in_tree(inner, folders[0])
    raise NoLogError(
        f"{tree.location} holds no log: name a controller's folder (it has a folder 'log'), that "
        "of `logberg up`, a folder of segments (20 digits and .log), or an archive of these."
    )


class _Below:
    """A folder of a tree, as a tree."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self._tree = tree
        self._folder = folder
        self.location = f"{tree.location}/{folder}"

    def files(self, folder: str) -> list[str]:
        return self._tree.files(self._path(folder))

    def folders(self, folder: str) -> list[str]:
        return self._tree.folders(self._path(folder))

    def size(self, path: str) -> int:
        return self._tree.size(self._path(path))

    def read(self, path: str, position: int = 0, length: int | None = None) -> bytes:
        return self._tree.read(self._path(path), position, length)

    def _path(self, path: str) -> str:
        return f"{self._folder}/{path}" if path else self._folder


def _kind(tree: Tree, folder: str) -> str:
    """Return what a folder is: `node`, `bare` (segments only), or "" for anything else."""
    inside = tree.folders(folder)
    if LOG_FOLDER in inside or (ARCHIVE_FOLDER in inside and _packed(tree, folder, ARCHIVE_FOLDER)):
        return "node"
    return "bare" if _packed(tree, folder, "") else ""


def _packed(tree: Tree, folder: str, inner: str) -> set[bool]:
    """Return for the segments in a folder whether they are compressed; empty without segments."""
    path = "/".join(part for part in (folder, inner) if part)
    return {
        name.endswith(_PACKED)
        for name in tree.files(path)
        if segment_base(name.removesuffix(_PACKED)) is not None
    }


def _replica(tree: Tree, folder: str, name: str, kind: str) -> Replica:
    inner = ("",) if kind == "bare" else (LOG_FOLDER, ARCHIVE_FOLDER)
    if any(True in _packed(tree, folder, each) for each in inner):
        tree = with_packed_segments(tree)
    disk: Disk = TreeDisk(tree, folder, bare=LOG_FOLDER if kind == "bare" else "")
    location = f"{tree.location}/{folder}" if folder else tree.location
    disk = with_archive(disk, location) if kind == "node" else disk
    try:
        return Replica(name, location, disk, _synced_mark(disk))
    except (LedgerError, DamagedError) as error:
        problem = (
            "the manifest can't be read, so the log's end was not checked against it. "
            f"Restore it, or remove it and use `--head`. ({error})"
        )
        return Replica(name, location, disk, problem=problem)


def _with_liveness(replica: Replica, path: Path) -> Replica:
    folder = Path(replica.location)
    live = may_be_written(folder if folder.is_dir() else path)
    return msgspec.structs.replace(replica, live=live)


def _synced_mark(disk: Disk) -> LogMark | None:
    """Read the log's mark in the manifest. Raises DamagedError, LedgerError."""
    if not disk.exists(MANIFEST):
        return None
    mark = decode_manifest(disk.read(MANIFEST)).mark_data
    return LogMark.decode(mark) if mark else None


def _stem(name: str) -> str:
    """Return an archive's name without its suffix."""
    lowered = name.lower()
    for suffix in (".tar.gz", ".tar.zst", ".tgz", ".tzst", ".tar", ".zip"):
        if lowered.endswith(suffix):
            return name[: -len(suffix)]
    return name
